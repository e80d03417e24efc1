"""Intervals: the grid of the anchor, whatever the wake-up time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import DATE_MAX_MS, Every
from cronward.schedule.every import next_every_ms
from cronward.schedule.planner import Unplannable, next_slot_ms, preview, settle


@pytest.mark.parametrize(
    ("interval_ms", "anchor_ms", "after_ms", "slot_ms"),
    [(1000, 500, 2500, 3500), (1000, 500, 2499, 2500), (1000, 5000, 10, 5000), (1000, 5000, 4999, 5000)],
)
def test_vectors(interval_ms: int, anchor_ms: int, after_ms: int, slot_ms: int) -> None:
    assert next_every_ms(interval_ms, anchor_ms, after_ms) == slot_ms


@given(st.integers(1, DATE_MAX_MS), st.integers(0, DATE_MAX_MS), st.integers(0, DATE_MAX_MS))
def test_the_next_grid_point(interval_ms: int, anchor_ms: int, after_ms: int) -> None:
    slot_ms = next_every_ms(interval_ms, anchor_ms, after_ms)
    if slot_ms is None:
        assert max(anchor_ms, after_ms + interval_ms) > DATE_MAX_MS
        return
    assert slot_ms > after_ms
    assert (slot_ms - anchor_ms) % interval_ms == 0
    assert slot_ms == anchor_ms or slot_ms - interval_ms <= after_ms


def test_the_time_of_creation_is_the_anchor_unless_one_is_given() -> None:
    assert settle(Every(60_000), job_id="job-1", now_ms=1234, default_tz="UTC") == Every(60_000, 1234)
    assert settle(Every(60_000, 7), job_id="job-1", now_ms=1234, default_tz="UTC") == Every(60_000, 7)


def test_b112_b197_neither_restarts_nor_manual_runs_move_the_grid() -> None:
    day_ms = 86_400_000
    seven = 7 * 3_600_000
    schedule = Every(day_ms, seven)
    for after_ms in (seven, seven + 6 * 3_600_000, seven + day_ms - 1):
        assert next_slot_ms(schedule, job_id="job-1", after_ms=after_ms) == seven + day_ms


def test_b083_many_missed_slots_cost_nothing() -> None:
    assert next_slot_ms(Every(1, 0), job_id="job-1", after_ms=1_800_000_000_000) == 1_800_000_000_001


def test_beyond_the_date_range_there_is_no_slot() -> None:
    with pytest.raises(InvalidRequest, match=r"schedule\.everyMs: would never fire"):
        settle(Every(DATE_MAX_MS), job_id="job-1", now_ms=1, default_tz="UTC")
    assert next_slot_ms(Every(DATE_MAX_MS, 0), job_id="job-1", after_ms=DATE_MAX_MS) is None
    (slot,) = preview(Every(DATE_MAX_MS, 0), job_id="job-1", after_ms=1, count=3)
    assert slot.local == "+275760-09-13T00:00:00.000+00:00"


def test_a_stored_interval_without_an_anchor_cannot_be_planned() -> None:
    with pytest.raises(Unplannable, match="anchor"):
        next_slot_ms(Every(60_000), job_id="job-1", after_ms=0)
