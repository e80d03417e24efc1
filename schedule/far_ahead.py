"""Deadlines that a wrong clock left absurdly far in the future."""

from cronward.protocol.job import Schedule
from cronward.schedule.planner import next_slot_ms


def is_far_ahead(schedule: Schedule, *, job_id: str, due_ms: int, now_ms: int) -> bool:
    """Whether two slots of the schedule come before the deadline. Raises Unplannable."""
    first_ms = next_slot_ms(schedule, job_id=job_id, after_ms=now_ms)
    if first_ms is None or first_ms >= due_ms:
        return False
    second_ms = next_slot_ms(schedule, job_id=job_id, after_ms=first_ms)
    return second_ms is not None and second_ms < due_ms
