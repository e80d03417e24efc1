"""Instants of a cron expression in a zone: matching wall times laid on the line of the zone's spans.

Clock changes follow Debian's cron. An expression with a fixed time runs once on every day: what falls into a gap runs
at the first instant after it, what comes twice runs the first time. An expression whose minute or hour begins with a
star keeps pace with real time: a gap is no time at all, a repeated hour is an hour like any other.
"""

import functools

from cronward.schedule import grammar
from cronward.schedule.spans import LAST_YEAR, spans
from cronward.schedule.walltime import WallTimes
from cronward.schedule.zones import zone

OVERLAP_MAX_S = 2 * 86_400
"""More than any zone ever set its clocks back."""
NOTHING_YET_S = -(2**62)
FIRST_S = -62_000_000_000
"""In the year 5: a search begins no earlier, whatever is asked."""
LAST_S = (LAST_YEAR - 1970) * 365 * 86_400


class CronRule:
    """A compiled expression in a zone."""

    __slots__ = ("fixed_time", "tz", "wall_times", "zone")

    def __init__(self, expression: grammar.Expression, tz: str) -> None:
        self.zone = zone(tz)
        self.tz = tz
        self.fixed_time = expression.fixed_time
        self.wall_times = WallTimes(expression)

    def next_s(self, after_s: int) -> int | None:
        """The first instant (epoch seconds) strictly later than `after_s`, or None if there is none any more."""
        if after_s > LAST_S:
            return None
        from_s = max(after_s, FIRST_S) + 1
        had_until_s = NOTHING_YET_S  # wall times before this one came already, in an earlier span
        asked_s, found_s = 1, 0  # `found_s` answers for every wall time from `asked_s` to itself
        for span in spans(self.tz, from_s - OVERLAP_MAX_S):
            begin_s = max(span.wall_start_s, from_s + span.offset_s)
            if self.fixed_time:
                into_gap = had_until_s < span.wall_start_s and from_s <= span.start_s
                begin_s = had_until_s if into_gap else max(begin_s, had_until_s)
            had_until_s = max(had_until_s, span.wall_end_s)
            if span.end_s <= from_s:
                continue
            if not asked_s <= begin_s <= found_s:
                found = self.wall_times.next(begin_s)
                if found is None:
                    return None
                asked_s, found_s = begin_s, found
            if found_s < span.wall_end_s:
                return max(found_s - span.offset_s, span.start_s)
        return None


@functools.lru_cache(maxsize=8192)
def _compiled(expr: str, tz: str, seed: str) -> CronRule:
    return CronRule(grammar.parse(expr, seed), tz)


def cron_rule(expr: str, tz: str, job_id: str) -> CronRule:
    """The compiled rule, from a cache. Only an expression with H depends on the job. Raises InvalidRequest."""
    return _compiled(expr, tz, job_id if grammar.uses_hash(expr) else "")


def comes_for_every_job(expr: str, tz: str, after_s: int) -> bool:
    """Whether a slot of an expression with H comes wherever H falls. Raises InvalidRequest."""
    return all(CronRule(found, tz).next_s(after_s) is not None for found in set(grammar.extremes(expr)))


def forget() -> None:
    """The zone database has changed."""
    _compiled.cache_clear()
