"""Deadlines that only a clock which was ahead explains."""

from cronward.protocol.job import Every
from cronward.schedule.deadline import Deadline
from cronward.schedule.far_ahead import is_far_ahead

NOW_MS = 1_800_000_000_000
SECONDLY = Every(1_000, NOW_MS - 10_000)


def judged(deadline: Deadline) -> bool:
    return is_far_ahead(SECONDLY, deadline, job_id="j", changed_ms=NOW_MS - 10_000, last_run_ms=None, now_ms=NOW_MS)


def test_two_slots_before_it_are_one_too_many() -> None:
    assert not judged(Deadline(NOW_MS + 2_000))
    assert judged(Deadline(NOW_MS + 3_000))


def test_a_slot_that_waits_for_the_gap_after_a_run_keeps_its_place() -> None:
    assert not judged(Deadline(NOW_MS + 30_000, slot_ms=NOW_MS + 1_000))
