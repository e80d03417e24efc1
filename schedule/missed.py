"""Which slots were missed: the ones from a deadline that nobody served until now, found without walking over all."""

from cronward.protocol.job import Schedule
from cronward.schedule.planner import next_slot_ms


def latest_slot_ms(schedule: Schedule, *, job_id: str, from_ms: int, now_ms: int) -> int:
    """The last slot that is not later than `now_ms`; `from_ms`, which counts as one, if none came after it.

    Halves the time in question with each step, so a second's job that was down for a year costs as little as a daily
    one. Raises Unplannable.
    """
    latest_ms, none_after_ms = from_ms, now_ms
    while latest_ms < none_after_ms:
        middle_ms = (latest_ms + none_after_ms) // 2
        slot_ms = next_slot_ms(schedule, job_id=job_id, after_ms=middle_ms)
        if slot_ms is not None and slot_ms <= now_ms:
            latest_ms = slot_ms
        else:
            none_after_ms = middle_ms
    return latest_ms


def last_slots_ms(schedule: Schedule, *, job_id: str, from_ms: int, now_ms: int, count: int) -> list[int]:
    """At most the last `count` slots from `from_ms` (which counts as one) through `now_ms`, oldest first."""
    found: list[int] = []
    while len(found) < count and now_ms >= from_ms:
        slot_ms = latest_slot_ms(schedule, job_id=job_id, from_ms=from_ms, now_ms=now_ms)
        found.append(slot_ms)
        now_ms = slot_ms - 1
    return found[::-1]
