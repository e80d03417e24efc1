"""Slots around an instant: whether it is one, which come before and after, and what a clock change did to it."""

from cronward.protocol.job import Cron, Schedule
from cronward.schedule.cron import cron_rule
from cronward.schedule.missed import latest_slot_ms
from cronward.schedule.notes import absence
from cronward.schedule.planner import next_slot_ms
from cronward.schedule.stagger import offset_ms

_HORIZONS_MS = tuple(days * 86_400_000 for days in (1, 40, 400, 8 * 366, 100 * 366))


def is_slot(schedule: Schedule, *, job_id: str, at_ms: int) -> bool:
    """Raises Unplannable."""
    return next_slot_ms(schedule, job_id=job_id, after_ms=at_ms - 1) == at_ms


def previous_slot_ms(schedule: Schedule, *, job_id: str, before_ms: int) -> int | None:
    """The last slot before an instant, or None if there is none for a hundred years. Raises Unplannable."""
    for horizon_ms in _HORIZONS_MS:
        first_ms = next_slot_ms(schedule, job_id=job_id, after_ms=before_ms - horizon_ms)
        if first_ms is not None and first_ms < before_ms:
            return latest_slot_ms(schedule, job_id=job_id, from_ms=first_ms, now_ms=before_ms - 1)
    return None


def staggered_ms(schedule: Schedule, *, job_id: str, at_ms: int) -> int:
    """Where stagger puts what the expression names for `at_ms`."""
    return at_ms + offset_ms(job_id, schedule.stagger_ms or 0) if isinstance(schedule, Cron) else at_ms


def swallowed(schedule: Schedule, *, job_id: str, at_ms: int) -> str | None:
    """For an instant that is no slot: what the zone's clocks did to the slot that its wall time would be."""
    if not isinstance(schedule, Cron) or schedule.tz is None:
        return None
    rule = cron_rule(schedule.expr, schedule.tz, job_id)
    shift_ms = offset_ms(job_id, schedule.stagger_ms or 0)
    return absence(rule, at_ms // 1000) or absence(rule, (at_ms - shift_ms) // 1000)
