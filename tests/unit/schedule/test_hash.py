"""H: a place of its own for each job, the same for ever."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import Cron
from cronward.schedule import grammar, planner
from cronward.schedule.at import parse_at
from tests.unit.schedule.listing import utc

IDS = [*(f"job-{number}" for number in range(500)), "lml-scamper", "", "ä", "x" * 500]


def minutes(field: str, job_id: str) -> tuple[int, ...]:
    return grammar.parse(f"{field} * * * *", job_id).minutes


def test_a_step_that_divides_the_hour_gives_twelve_even_runs_for_every_id() -> None:
    for job_id in IDS:
        found = minutes("H/5", job_id)
        gaps = {(later - earlier) % 60 for earlier, later in zip(found, (*found[1:], found[0]), strict=True)}
        assert (len(found), gaps) == (12, {5}), job_id


def test_every_place_is_taken_by_somebody() -> None:
    assert {minutes("H", job_id)[0] for job_id in IDS} == set(range(60))
    assert {minutes("H/5", job_id)[0] for job_id in IDS} == set(range(5))
    assert {minutes("H(10-14)", job_id)[0] for job_id in IDS} == set(range(10, 15))


def test_two_jobs_with_the_same_expression_run_at_places_of_their_own() -> None:
    first, second = (utc("H * * * *", "UTC", "2026-01-01", 2, job_id) for job_id in ("job-1", "job-2"))
    assert first != second
    assert utc("H * * * *", "UTC", "2026-01-01", 2, "job-1") == first


def test_a_hashed_day_is_one_that_every_month_has() -> None:
    days = {grammar.parse("H H H * *", job_id).day_rule.days for job_id in IDS}
    assert days == {(day,) for day in range(1, 29)}


def test_places_in_different_fields_are_independent() -> None:
    pairs = {(found.minutes[0], found.seconds[0]) for found in (grammar.parse("H H * * * *", i) for i in IDS)}
    assert sum(minute == second for minute, second in pairs) < 40


def test_places_never_change() -> None:
    found = grammar.parse("H H(0-7) H * H", "00000000-0000-4000-8000-000000000000")
    assert (found.minutes, found.hours) == ((24,), (2,))
    assert (found.day_rule.days, found.day_rule.weekdays) == ((12,), (6,))


@given(
    low=st.integers(0, 59),
    high=st.integers(0, 59),
    step=st.integers(0, 70),
    ids=st.lists(st.text(max_size=20), min_size=2, max_size=8),
)
def test_the_verdict_and_the_number_of_places_do_not_depend_on_the_id(
    low: int, high: int, step: int, ids: list[str]
) -> None:
    def judge(job_id: str) -> bool:
        try:
            found = minutes(f"H({low}-{high})/{step}", job_id)
        except InvalidRequest:
            return False
        assert all(low <= minute <= high for minute in found)
        assert len(found) in {(high - low + 1) // step, -(-(high - low + 1) // step)}
        return True

    assert len({judge(job_id) for job_id in ids}) == 1


@pytest.mark.parametrize("job_id", IDS[:40])
@pytest.mark.parametrize(
    ("expr", "comes"),
    [
        ("0 0 H(29-31) 2 *", False),
        ("0 0 H(29-31)/2 2 *", False),
        ("0 0 31 H(2-5) *", False),
        ("0 0 31 H(3-5) *", False),
        ("0 0 H(29-31),1 2 *", True),
        ("0 0 H(29-31) 3 *", True),
        ("0 0 31 H(7-8) *", True),
        ("H H H H H", True),
    ],
)
def test_whether_it_ever_comes_does_not_depend_on_the_id(expr: str, comes: bool, job_id: str) -> None:
    now_ms = parse_at("2030-01-02T12:00Z")
    expected = contextlib.nullcontext() if comes else pytest.raises(InvalidRequest, match="at least for some jobs")
    with expected:
        planner.settle(Cron(expr, "UTC"), job_id=job_id, now_ms=now_ms, default_tz="UTC")


@pytest.mark.parametrize("expr", ["0 0 0 H(1-3) 1 * 2030", "0 0 0 */5 2 H 2027", "0 0 0 1 H * 2090-2099"])
def test_days_of_named_years_are_not_hashed(expr: str) -> None:
    """They may not be there in those years, for some jobs and not for others."""
    now_ms = parse_at("2026-12-02")
    with pytest.raises(InvalidRequest, match="names a year, and the day, month or weekday is H"):
        planner.settle(Cron(expr, "UTC"), job_id="j", now_ms=now_ms, default_tz="UTC")
