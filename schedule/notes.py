"""What a clock change did to a slot, in words. For previews only; firing needs none of it."""

import datetime as dt

from cronward.schedule.cron import OVERLAP_MAX_S, CronRule
from cronward.schedule.spans import Span, spans

OTHERS_MAX = 100
"""More are not counted: a schedule by the second loses thousands in an hour."""


def note(rule: CronRule, slot_s: int, before_s: int) -> str | None:
    """Why the slot at `slot_s` is not where it is on other days, or what was dropped since `before_s`."""
    earlier: Span | None = None
    remark = None
    for span in spans(rule.tz, min(slot_s, before_s) - OVERLAP_MAX_S):
        if span.start_s > slot_s + OVERLAP_MAX_S:
            break
        if earlier is not None and earlier.offset_s != span.offset_s:
            remark = _gap_note(rule, slot_s, before_s, earlier, span) or _overlap_note(rule, slot_s, earlier, span)
            if remark is not None:
                break
        earlier = span
    return remark


def absence(rule: CronRule, at_s: int) -> str | None:
    """Why there is no slot at `at_s` although the wall clock says that there should be one: it comes twice and ran the
    first time, or at this instant the clocks jumped over it."""
    earlier: Span | None = None
    for span in spans(rule.tz, at_s - OVERLAP_MAX_S):
        if span.start_s > at_s:
            break
        if earlier is not None and earlier.offset_s != span.offset_s:
            wall_s = at_s + span.offset_s
            if wall_s < earlier.wall_end_s and rule.wall_times.next(wall_s) == wall_s:
                return f"{_wall(wall_s)} comes twice: it runs the first time only"
            if span.start_s == at_s:
                lost_s = rule.wall_times.next(earlier.wall_end_s)
                if lost_s is not None and lost_s < span.wall_start_s:
                    return (
                        f"{_wall(lost_s)} does not exist: the clocks go from {_wall(earlier.wall_end_s)} to "
                        f"{_wall(span.wall_start_s)}"
                    )
        earlier = span
    return None


def _gap_note(rule: CronRule, slot_s: int, before_s: int, earlier: Span, later: Span) -> str | None:
    """A time in the gap is moved to its end, or dropped if the job keeps pace with real time."""
    if not before_s < later.start_s <= slot_s:
        return None
    lost_s = rule.wall_times.next(earlier.wall_end_s)
    if lost_s is None or lost_s >= later.wall_start_s:
        return None
    jump = f"the clocks go from {_wall(earlier.wall_end_s)} to {_wall(later.wall_start_s)}"
    others = _others(rule, lost_s, later.wall_start_s)
    if not rule.fixed_time:
        return f"{_wall(lost_s)}{others} is dropped: {jump}"
    return f"moved from {_wall(lost_s)}{others}: {jump}" if slot_s == later.start_s else None


def _others(rule: CronRule, lost_s: int, until_s: int) -> str:
    """How many further times are lost with the first one."""
    count, next_s = 0, rule.wall_times.next(lost_s + 1)
    while next_s is not None and next_s < until_s and count < OTHERS_MAX:
        count, next_s = count + 1, rule.wall_times.next(next_s + 1)
    more = f"{count} or more" if count == OTHERS_MAX else str(count)
    return f" (with {more} after it)" if count else ""


def _overlap_note(rule: CronRule, slot_s: int, earlier: Span, later: Span) -> str | None:
    """A time that the clocks show twice."""
    if not later.wall_start_s <= slot_s + _offset_s(slot_s, earlier, later) < earlier.wall_end_s:
        return None
    clock = _wall(slot_s + _offset_s(slot_s, earlier, later))
    if slot_s >= later.start_s:
        return f"{clock} comes twice: this is the second time"
    return f"{clock} comes twice: " + ("runs the first time only" if rule.fixed_time else "this is the first time")


def _offset_s(slot_s: int, earlier: Span, later: Span) -> int:
    return (earlier if slot_s < later.start_s else later).offset_s


def _wall(wall_s: int) -> str:
    text = (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=wall_s)).isoformat(" ")  # noqa: DTZ001 - a wall clock
    return text.removesuffix(":00")
