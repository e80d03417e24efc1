"""Schedules as the scheduler and the command line use them: settle one, find its next slot, preview its slots."""

import datetime as dt
from typing import assert_never

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import At, Cron, Every, Schedule
from cronward.protocol.views import SlotView
from cronward.schedule import grammar
from cronward.schedule.at import is_beyond_calendar, iso_utc, parse_at, settle_at
from cronward.schedule.cron import CronRule, comes_for_every_job, cron_rule
from cronward.schedule.every import next_every_ms
from cronward.schedule.notes import note
from cronward.schedule.refusal import refusal
from cronward.schedule.stagger import default_stagger_ms, offset_ms
from cronward.schedule.zones import warning

Slot = SlotView
"""A coming slot, as clients see it: `at_ms`, `local` (ISO 8601 with offset, in the job's zone), `note`."""


class Unplannable(Exception):
    """A stored schedule that cannot be computed: a damaged expression, a zone that is gone. Says why."""


def settle(schedule: Schedule, *, job_id: str, now_ms: int, default_tz: str) -> Schedule:
    """The schedule as it is stored at creation or replacement: nothing in it depends on later defaults.

    `at` becomes ISO 8601 in UTC, `every` gets its anchor, `cron` its zone and stagger. Raises InvalidRequest for what
    cannot be read and for what can never fire.
    """
    match schedule:
        case At(at=text):
            return At(settle_at(text, now_ms))
        case Every(every_ms=every_ms, anchor_ms=anchor_ms):
            settled: Every | Cron = Every(every_ms, now_ms if anchor_ms is None else anchor_ms)
            field, value = "schedule.everyMs", str(every_ms)
        case Cron(expr=expr, tz=tz, stagger_ms=stagger_ms):
            rule = cron_rule(expr, default_tz if tz is None else tz, job_id)
            if grammar.uses_hash(expr):
                _refuse_for_some(expr, rule.tz, now_ms)
            stagger_ms = default_stagger_ms(expr) if stagger_ms is None else stagger_ms
            settled = Cron(" ".join(expr.split()), rule.tz, stagger_ms)
            field, value = _EXPR, expr
        case _:
            assert_never(schedule)
    if next_slot_ms(settled, job_id=job_id, after_ms=now_ms) is None:
        raise refusal(field, "would never fire", value=value, allowed=_COMES, hint=_NEVER if field == _EXPR else "")
    return settled


_COMES = "a schedule with a slot to come"
_NEVER = "the days, months and years of the expression never meet any more"
_EXPR = "schedule.expr"


def _refuse_for_some(expr: str, tz: str, now_ms: int) -> None:
    """An expression with H gets the same verdict for every job, wherever H falls."""
    if grammar.hashes_days_of_years(expr):
        fault = "names a year, and the day, month or weekday is H"
        raise refusal(_EXPR, fault, value=expr, allowed="H beside a year only for second, minute and hour")
    if not comes_for_every_job(expr, tz, now_ms // 1000):
        raise refusal(_EXPR, "would never fire, at least for some jobs", value=expr, allowed=_COMES, hint=_NEVER)


def next_slot_ms(schedule: Schedule, *, job_id: str, after_ms: int) -> int | None:
    """The first slot of a settled schedule strictly later than `after_ms`, or None if there is none any more.

    Raises Unplannable.
    """
    match schedule:
        case At(at=text):
            at_ms = _instant_ms(text)
            return at_ms if at_ms > after_ms else None
        case Every(every_ms=every_ms, anchor_ms=anchor_ms):
            if anchor_ms is None:
                raise Unplannable("the interval has no anchor")
            return next_every_ms(every_ms, anchor_ms, after_ms)
        case Cron():
            rule, shift_ms = _stored_rule(schedule, job_id)
            slot_s = rule.next_s((after_ms - shift_ms) // 1000)
            return None if slot_s is None else slot_s * 1000 + shift_ms
        case _:
            assert_never(schedule)


def preview(schedule: Schedule, *, job_id: str, after_ms: int, count: int) -> list[Slot]:
    """The next `count` slots (fewer if there are no more) of a settled schedule. Raises Unplannable."""
    slots: list[Slot] = []
    while len(slots) < count:
        slot_ms = next_slot_ms(schedule, job_id=job_id, after_ms=after_ms)
        if slot_ms is None:
            break
        slots.append(_slot(schedule, job_id, slot_ms, after_ms, first=not slots))
        after_ms = slot_ms
    return slots


def local_time(schedule: Schedule, *, job_id: str, at_ms: int) -> str:
    """An instant as ISO 8601 with offset, in the zone of the schedule. Raises Unplannable."""
    if not isinstance(schedule, Cron) or is_beyond_calendar(at_ms):
        return iso_utc(at_ms).replace("Z", "+00:00")
    instant = dt.datetime.fromtimestamp(at_ms // 1000, _stored_rule(schedule, job_id)[0].zone)
    timespec = "milliseconds" if at_ms % 1000 else "seconds"
    return instant.replace(microsecond=at_ms % 1000 * 1000).isoformat(timespec=timespec)


def _slot(schedule: Schedule, job_id: str, slot_ms: int, before_ms: int, *, first: bool) -> Slot:
    remarks: list[str | None] = []
    if isinstance(schedule, Cron):
        rule, shift_ms = _stored_rule(schedule, job_id)
        remarks = [
            warning(rule.tz) if first else None,
            note(rule, (slot_ms - shift_ms) // 1000, (before_ms - shift_ms) // 1000),
        ]
    local = local_time(schedule, job_id=job_id, at_ms=slot_ms)
    return Slot(slot_ms, local, "; ".join(remark for remark in remarks if remark) or None)


def _stored_rule(schedule: Cron, job_id: str) -> tuple[CronRule, int]:
    """The compiled rule and the job's offset in ms."""
    if schedule.tz is None:
        raise Unplannable("the expression has no time zone")
    try:
        return cron_rule(schedule.expr, schedule.tz, job_id), offset_ms(job_id, schedule.stagger_ms or 0)
    except InvalidRequest as error:
        raise Unplannable(error.message) from error


def _instant_ms(text: str) -> int:
    try:
        return parse_at(text)
    except InvalidRequest as error:
        raise Unplannable(error.message) from error
