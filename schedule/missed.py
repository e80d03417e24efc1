"""Which slots were missed: the ones from a deadline that nobody served until now, found without walking over all."""

from cronward.protocol.job import Schedule
from cronward.schedule.planner import next_slot_ms


def latest_slot_ms(schedule: Schedule, *, job_id: str, from_ms: int, now_ms: int) -> int:
    """The last slot that is not later than `now_ms`; `from_ms`, which counts as one, if none came after it.

    Most schedules are even, so the distance of the two slots after now is tried first. Otherwise each step halves the
    time in question: a second's job that was down for a year costs hardly more than a daily one. Raises Unplannable.
    """

    def next_ms(after_ms: int) -> int | None:
        slot_ms = next_slot_ms(schedule, job_id=job_id, after_ms=after_ms)
        return None if slot_ms is None or slot_ms > now_ms else slot_ms

    if (latest_ms := next_ms(from_ms)) is None:
        return from_ms
    latest_ms = next_ms(max(from_ms, now_ms - _distance_ms(schedule, job_id, now_ms))) or latest_ms
    if next_ms(latest_ms) is None:
        return latest_ms
    none_after_ms = now_ms
    while latest_ms < none_after_ms:
        middle_ms = (latest_ms + none_after_ms) // 2
        if (slot_ms := next_ms(middle_ms)) is not None:
            latest_ms = slot_ms
        else:
            none_after_ms = middle_ms
    return latest_ms


def _distance_ms(schedule: Schedule, job_id: str, now_ms: int) -> int:
    """Between the next two slots; 0 if there are no two any more."""
    first_ms = next_slot_ms(schedule, job_id=job_id, after_ms=now_ms)
    second_ms = None if first_ms is None else next_slot_ms(schedule, job_id=job_id, after_ms=first_ms)
    return 0 if first_ms is None or second_ms is None else second_ms - first_ms


def last_slots_ms(schedule: Schedule, *, job_id: str, from_ms: int, now_ms: int, count: int) -> list[int]:
    """At most the last `count` slots from `from_ms` (which counts as one) through `now_ms`, oldest first."""
    found: list[int] = []
    while len(found) < count and now_ms >= from_ms:
        slot_ms = latest_slot_ms(schedule, job_id=job_id, from_ms=from_ms, now_ms=now_ms)
        found.append(slot_ms)
        now_ms = slot_ms - 1
    return found[::-1]
