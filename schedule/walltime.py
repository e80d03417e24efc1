"""Matching wall times: seconds since 1970-01-01 00:00 on a wall clock that is never changed."""

from collections.abc import Iterable

from cronward.schedule.days import DAY_S, days_of
from cronward.schedule.grammar import Expression


class WallTimes:
    """The wall times that an expression names."""

    __slots__ = ("_days", "_first_in_day_s", "_first_in_hour_s", "_first_second", "_hours", "_minutes", "_seconds")

    def __init__(self, expression: Expression) -> None:
        self._days = days_of(expression.day_rule)
        self._seconds = _bits(expression.seconds)
        self._minutes = _bits(expression.minutes)
        self._hours = _bits(expression.hours)
        first_minute_s = expression.minutes[0] * 60 + expression.seconds[0]
        self._first_second = expression.seconds[0]
        self._first_in_hour_s = first_minute_s
        self._first_in_day_s = expression.hours[0] * 3600 + first_minute_s

    def next(self, wall_s: int) -> int | None:
        """The first matching wall time that is `wall_s` or later, or None if there is none within fifty years."""
        day, time_s = divmod(wall_s, DAY_S)
        found = self._days.next_day(day)
        if found == day:
            time = self._next_in_day(time_s)
            if time is not None:
                return day * DAY_S + time
            found = self._days.next_day(day + 1)
        return None if found is None else found * DAY_S + self._first_in_day_s

    def _next_in_day(self, time_s: int) -> int | None:
        minute_of_day, second = divmod(time_s, 60)
        hour, minute = divmod(minute_of_day, 60)
        found_second = _next_bit(self._seconds, second)
        if found_second is None:
            minute, found_second = minute + 1, self._first_second
        found_minute = _next_bit(self._minutes, minute)
        found_hour = _next_bit(self._hours, hour if found_minute is not None else hour + 1)
        if found_hour is None:
            return None
        if found_minute is None or found_hour != hour:
            return found_hour * 3600 + self._first_in_hour_s
        if found_minute != minute:
            found_second = self._first_second
        return found_hour * 3600 + found_minute * 60 + found_second


def _bits(values: Iterable[int]) -> int:
    return sum(1 << value for value in values)


def _next_bit(bits: int, start: int) -> int | None:
    """The lowest bit set at `start` or above."""
    above = bits >> start
    return start + (above & -above).bit_length() - 1 if above else None
