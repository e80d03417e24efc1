"""Which days match: the calendar part of a cron expression, computed by croniter. Nothing else imports croniter.

croniter only ever sees midnights without a zone and plain values, where it agrees with every other implementation
that we compared. What it reads differently from us (equal ranges, wrap-around steps, six fields, H, R) never reaches
it, and neither do clock changes. It cannot mix some forms in one field (`1,15W`, `1,5#2`), so a rule becomes one or
more croniter iterators, and the next day is the earliest that any of them names.
"""

import functools
import itertools

from croniter import CroniterBadDateError, croniter

from cronward.schedule.grammar import DayRule

DAY_S = 86_400
GAP_MAX_YEARS = 50
"""Longer than any gap between two matches: 29 February on a given weekday comes back after at most 40 years."""
WITH_YEARS_MAX_YEARS = 200
"""Where years are named, the first of them may be as far away as the calendar of croniter reaches."""

ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS = 31, 12, 7


class Days:
    """The matching days of a rule. Days are counted from 1970-01-01."""

    def __init__(self, rule: DayRule) -> None:
        horizon_years = GAP_MAX_YEARS if rule.years is None else WITH_YEARS_MAX_YEARS
        self._patterns = [_Pattern(text, horizon_years) for text in _plain_expressions(rule)]
        self.next_day = functools.lru_cache(maxsize=64)(self._next_day)

    def _next_day(self, day: int) -> int | None:
        """The first matching day that is `day` or later, or None."""
        found = [pattern.next_day(day) for pattern in self._patterns]
        return min((day for day in found if day is not None), default=None)


class EveryDay:
    """The commonest rule, without a search."""

    def next_day(self, day: int) -> int | None:
        return day


@functools.lru_cache(maxsize=2048)
def days_of(rule: DayRule) -> Days | EveryDay:
    """Shared by all expressions whose day, month, weekday and year fields mean the same."""
    unrestricted = len(rule.days) == ALL_DAYS and len(rule.weekdays) == ALL_WEEKDAYS and rule.both
    if unrestricted and len(rule.months) == ALL_MONTHS and rule.years is None:
        return EveryDay()
    return Days(rule)


class _Pattern:
    """One croniter iterator over midnights."""

    def __init__(self, text: str, horizon_years: int) -> None:
        self._iterator = croniter(text, 0.0, float, day_or=False, max_years_between_matches=horizon_years)
        self._over_from: int | None = None

    def next_day(self, day: int) -> int | None:
        # Learning that nothing comes any more is the one slow answer (tens of ms), so it is given once.
        if self._over_from is not None and day >= self._over_from:
            return None
        try:
            return int(self._iterator.get_next(float, start_time=float(day * DAY_S - 1))) // DAY_S
        except CroniterBadDateError:
            self._over_from = day
            return None


def _plain_expressions(rule: DayRule) -> list[str]:
    """The rule as expressions in each of which all fields must match."""
    days = [f"{day}W" for day in rule.nearest]
    if rule.days:
        days.append(_joined(rule.days, ALL_DAYS))
    if rule.last and len(rule.days) < ALL_DAYS:
        days.append("L")  # in one field with 30 days croniter takes it for the 31st value, and all 31 for a star
    weekdays = []
    if rule.weekdays:
        weekdays.append(_joined(rule.weekdays, ALL_WEEKDAYS))
    if rule.nth:
        weekdays.append(",".join(f"{weekday}#{n}" if n else f"L{weekday}" for weekday, n in rule.nth))
    pairs = [*itertools.product(days, weekdays)] if rule.both else [(day, "*") for day in days]
    if not rule.both:
        pairs += [("*", weekday) for weekday in weekdays]
    months = _joined(rule.months, ALL_MONTHS)
    year = "" if rule.years is None else " 0 " + _joined(rule.years, 0)
    return [f"0 0 {day} {months} {weekday}{year}" for day, weekday in pairs]


def _joined(values: tuple[int, ...], everything: int) -> str:
    return "*" if len(values) == everything else ",".join(map(str, values))
