"""A zone as a line of spans, in each of which the clocks keep one distance from UTC. All numbers are seconds."""

import datetime as dt
import functools
from collections.abc import Iterator
from typing import NamedTuple

from cronward.schedule.zones import zone

DAY_S = 86_400
FIRST_YEAR = 2
LAST_YEAR = 9900
"""Far below datetime's end, so that no search can run into it."""


class Span(NamedTuple):
    """Instants from `start_s` to before `end_s`; wall time is the instant plus `offset_s`. A span also ends where a
    UTC year does, so neighbours may have the same offset."""

    start_s: int
    end_s: int
    offset_s: int

    @property
    def wall_start_s(self) -> int:
        return self.start_s + self.offset_s

    @property
    def wall_end_s(self) -> int:
        return self.end_s + self.offset_s


def spans(tz: str, from_s: int) -> Iterator[Span]:
    """The spans of a zone in order, beginning with the one that `from_s` lies in: of the years 2 to LAST_YEAR."""
    if from_s >= _year_start_s(LAST_YEAR + 1):
        return
    from_s = max(from_s, _year_start_s(FIRST_YEAR))
    first_year = (dt.date(1970, 1, 1) + dt.timedelta(seconds=from_s)).year
    for year in range(first_year, LAST_YEAR + 1):
        for span in _spans_of_year(tz, year):
            if span.end_s > from_s:
                yield span


@functools.lru_cache(maxsize=4096)
def _spans_of_year(tz: str, year: int) -> tuple[Span, ...]:
    """Looks at every midnight, so only changes that are taken back within a day could escape; no zone has had any."""
    start_s, year_end_s = _year_start_s(year), _year_start_s(year + 1)
    found = []
    offset_s = _offset_s(tz, start_s)
    for day_end_s in range(start_s + DAY_S, year_end_s + 1, DAY_S):
        if (later_s := _offset_s(tz, day_end_s)) != offset_s:
            change_s = _change_s(tz, day_end_s - DAY_S, day_end_s)
            found.append(Span(start_s, change_s, offset_s))
            start_s, offset_s = change_s, later_s
    return (*found, Span(start_s, year_end_s, offset_s))


def _change_s(tz: str, before_s: int, after_s: int) -> int:
    """The first instant in (before_s, after_s] with the later offset."""
    old_s = _offset_s(tz, before_s)
    while after_s - before_s > 1:
        middle_s = (before_s + after_s) // 2
        if _offset_s(tz, middle_s) == old_s:
            before_s = middle_s
        else:
            after_s = middle_s
    return after_s


def _offset_s(tz: str, instant_s: int) -> int:
    offset = dt.datetime.fromtimestamp(instant_s, zone(tz)).utcoffset()
    if offset is None:
        raise AssertionError(f"{tz} has no offset at {instant_s}")
    return int(offset.total_seconds())


def _year_start_s(year: int) -> int:
    return (dt.date(year, 1, 1) - dt.date(1970, 1, 1)).days * DAY_S


def forget() -> None:
    """The zone database has changed."""
    _spans_of_year.cache_clear()
