"""`cronward why`: the time that is asked about."""

import pytest

from cronward.cli.why import why, why_text
from cronward.protocol.views import WhyView
from cronward.protocol.why import Cause


@pytest.mark.parametrize("time", ["-2h", "-20s", "-1.5d", "+30m", "2030-01-01"])
@pytest.mark.parametrize("rest", [[], ["--json"]])
def test_a_time_is_no_option(time: str, rest: list[str]) -> None:
    context = why.make_context("why", ["backup", time, *rest])
    assert (context.params["job"], context.params["time"]) == ("backup", time)


def test_after_two_dashes_everything_is_an_argument() -> None:
    context = why.make_context("why", ["backup", "--", "-2h"])
    assert context.params["time"] == "-2h"


def test_a_zone_that_is_gone_is_no_reason_not_to_answer() -> None:
    said = why_text(WhyView("id", "job", 0, 0, Cause.FLAGGED, tz="Mars/Olympus", detail="is no known time zone"))
    assert "is no known time zone" in said
