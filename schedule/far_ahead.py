"""Deadlines that a clock which was ahead left far in the future. They are not taken back by themselves."""

from cronward.protocol.job import At, Every, Schedule
from cronward.schedule.deadline import Deadline, Kind
from cronward.schedule.planner import next_slot_ms

ONE_SHOT_MS = 3_600_000
"""It has no intervals: what puts it off longer than this is said."""


def is_far_ahead(
    schedule: Schedule, deadline: Deadline, *, job_id: str, changed_ms: int, last_run_ms: int | None, now_ms: int
) -> bool:
    """Whether two slots of the schedule come before the deadline and nothing but the clock explains it. `changed_ms` is
    when the schedule came into force. Raises Unplannable."""
    if deadline.kind is not Kind.SLOT:
        return was_set_ahead(deadline, last_run_ms=last_run_ms, now_ms=now_ms) and deadline.due_ms > _second_ms(
            schedule, job_id, now_ms
        )
    if has_anchor_ahead(schedule, now_ms) and changed_ms <= now_ms:
        return False  # it is to begin then
    return not isinstance(schedule, At) and deadline.slot > _second_ms(schedule, job_id, now_ms)


def was_set_ahead(deadline: Deadline, *, last_run_ms: int | None, now_ms: int) -> bool:
    """Whether what led to the deadline (a run that failed, a slot that was missed) is still to come."""
    if deadline.kind is Kind.CATCH_UP:
        return deadline.slot > now_ms
    return deadline.kind is not Kind.SLOT and last_run_ms is not None and last_run_ms > now_ms


def has_anchor_ahead(schedule: Schedule, now_ms: int) -> bool:
    """Whether the grid of an interval begins in the future."""
    return isinstance(schedule, Every) and schedule.anchor_ms is not None and schedule.anchor_ms > now_ms


def _second_ms(schedule: Schedule, job_id: str, now_ms: int) -> float:
    """When the second slot from now comes, as if a grid that begins later had begun already; never if there is none."""
    if isinstance(schedule, At):
        return now_ms + ONE_SHOT_MS
    if isinstance(schedule, Every) and has_anchor_ahead(schedule, now_ms):
        return now_ms + 2 * schedule.every_ms
    slot_ms: int | None = now_ms
    for _ in range(2):
        slot_ms = None if slot_ms is None else next_slot_ms(schedule, job_id=job_id, after_ms=slot_ms)
    return float("inf") if slot_ms is None else slot_ms
