"""`cronward why`: the time that is asked about."""

import msgspec
import pytest

from cronward.cli.main import main
from cronward.cli.why import why, why_text
from cronward.protocol.views import WhyView
from cronward.protocol.why import Cause
from tests.unit.cli.samples import run
from tests.unit.cli.scripted import ScriptedRouter, ok


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


@pytest.mark.parametrize(
    ("time", "within_ms"),
    [
        ("2026-03-08T02:30", 60_000),
        ("2026-03-08T02:30Z", 60_000),
        ("2026-03-08T02:30:15", 1_000),
        ("2026-03-08T02:30:15+01:00", 1_000),
        ("2026-03-08T02:30:15.5", 1),
        ("2026-03-08T02:30:15.500Z", 1),
        ("1772955000000", 1),
    ],
)
def test_a_time_is_meant_as_exactly_as_it_is_written(time: str, within_ms: int, query: ScriptedRouter) -> None:
    view = WhyView("id", "job", 0, 0, Cause.COMING)
    query.start(lambda request: [ok(request, view)])
    assert main(["why", "backup", time, "--json"]) == 0
    asked = msgspec.json.decode(query.requests[-1].params, type=dict[str, object])
    assert asked.get("withinMs", 1) == within_ms


def test_a_run_by_hand_says_who_asked_for_it() -> None:
    by_hand = run(kind="manual", mode="force", requester="uid 1000", slot_ms=0)
    said = why_text(WhyView("id", "job", 0, 0, Cause.RAN, tz="UTC", slot_ms=0, run=by_hand))
    assert "asked for by hand at Thu 1970-01-01 00:00:00 +00:00 UTC by uid 1000" in said


def test_what_is_to_come_is_told_as_that() -> None:
    coming = WhyView("id", "job", 5, 0, Cause.BACKOFF, tz="UTC", slot_ms=5_000, until_ms=9_000)
    assert "it will be left out: the job has failed and waits until" in why_text(coming)
    past = msgspec.structs.replace(coming, now_ms=6_000)
    assert "it was left out: the job had failed and waits until" in why_text(past)


@pytest.mark.parametrize("time", ["tomorrow", "02:30", "5m"])
def test_a_time_that_cannot_be_read(time: str, query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    query.start(lambda request: [ok(request, WhyView("id", "job", 0, 0, Cause.COMING))])
    assert main(["why", "backup", time]) == 2
    assert f"{time!r} is no TIME: use ISO 8601" in capsys.readouterr().err
