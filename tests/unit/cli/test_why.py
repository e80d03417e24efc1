"""`cronward why`: the time that is asked about."""

import pytest

from cronward.cli.why import why


@pytest.mark.parametrize("time", ["-2h", "-20s", "-1.5d", "+30m", "2030-01-01"])
@pytest.mark.parametrize("rest", [[], ["--json"]])
def test_a_time_is_no_option(time: str, rest: list[str]) -> None:
    context = why.make_context("why", ["backup", time, *rest])
    assert (context.params["job"], context.params["time"]) == ("backup", time)


def test_after_two_dashes_everything_is_an_argument() -> None:
    context = why.make_context("why", ["backup", "--", "-2h"])
    assert context.params["time"] == "-2h"
