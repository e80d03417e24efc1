"""A schedule in words, for people who do not read cron expressions."""

from collections.abc import Callable, Iterable

from cronward.protocol.job import At, Cron, Every, Schedule
from cronward.schedule import grammar
from cronward.schedule.duration import interval
from cronward.schedule.fields import HOUR, MINUTE, MONTHS, SECOND, WEEKDAYS, Field
from cronward.schedule.grammar import DayRule, Expression

_DAY_NAMES = tuple(name.capitalize() for name in WEEKDAYS)
_MONTH_NAMES = ("", *(name.capitalize() for name in MONTHS))
_TIMES_MAX = 6
"""So many times of day are written out."""


def explain(schedule: Schedule, job_id: str) -> str:
    """One sentence without a full stop. The schedule is valid; raises InvalidRequest if it is not."""
    match schedule:
        case At(at=at):
            return f"once, at {at}"
        case Every(every_ms=every_ms):
            return f"every {interval(every_ms)}, counted from a fixed instant"
        case Cron(expr=expr, tz=tz):
            words = explain_expression(grammar.parse(expr, job_id))
            words += f", {tz} time" if tz else ""
            return f"{words} (H is a place of the job's own)" if grammar.uses_hash(expr) else words


def explain_expression(expression: Expression) -> str:
    """Time of day, days, months, years."""
    parts = [_time(expression), _days(expression.day_rule), _months(expression.day_rule)]
    years = expression.day_rule.years
    if years is not None:
        parts.append(f"in {_listed(years, str)}")
    return " ".join(part for part in parts if part)


def _time(expression: Expression) -> str:
    seconds, minutes, hours = expression.seconds, expression.minutes, expression.hours
    single = seconds == (0,)
    if single and len(minutes) * len(hours) <= _TIMES_MAX:
        return f"at {_joined(f'{hour:02}:{minute:02}' for hour in hours for minute in minutes)}"
    if len(seconds) == 1 and len(minutes) * len(hours) <= _TIMES_MAX:
        return f"at {_joined(f'{hour:02}:{minute:02}:{seconds[0]:02}' for hour in hours for minute in minutes)}"
    if single and minutes == (0,) and len(hours) == HOUR.size:
        return "at the start of every hour"
    parts = [] if single else [_every_or_listed(SECOND, seconds)]
    if single or len(seconds) == 1 or len(minutes) < MINUTE.size:
        parts.append(_every_or_listed(MINUTE, minutes))
    if len(hours) < HOUR.size or len(minutes) == 1:
        parts.append(_every_or_listed(HOUR, hours))
    return " of ".join(parts)


def _every_or_listed(field: Field, values: tuple[int, ...]) -> str:
    """`every 5th minute`, `every minute`, `minutes 1, 7 and 30`, `the hours 9 to 17`."""
    if len(values) == field.size:
        return f"every {field.name}"
    step = values[1] - values[0] if len(values) > 2 else 0
    if step > 1 and values == tuple(range(field.low, field.high + 1, step)):
        return f"every {step}{_suffix(step)} {field.name}"
    return f"{field.name}{'s' if len(values) > 1 else ''} {_listed(values, str)}"


def _days(rule: DayRule) -> str:
    of_month = _days_of_month(rule)
    of_week = _weekdays(rule)
    if of_month is None and of_week is None:
        return "" if rule.both else "on every day"
    if of_month is None:
        return f"on {of_week}" if rule.both else "on every day"
    if of_week is None:
        return f"on {of_month}" if rule.both else "on every day"
    return f"on {of_month} if it is {of_week}" if rule.both else f"on {of_month}, and on {of_week}"


def _days_of_month(rule: DayRule) -> str | None:
    """None for every day."""
    if len(rule.days) == 31:
        return None
    names = [f"the weekday (Mon-Fri) nearest to the {_ordinal(day)}" for day in rule.nearest if day != 31]
    names += ["the last weekday (Mon-Fri) of the month"] if 31 in rule.nearest else []
    names += ["the last day of the month"] if rule.last else []
    if rule.days:
        names.insert(0, f"the {_listed(rule.days, _ordinal)}")
    return _joined(names)


def _weekdays(rule: DayRule) -> str | None:
    """None for every day."""
    if len(rule.weekdays) == 7:
        return None
    names = [_listed(rule.weekdays, lambda day: _DAY_NAMES[day], after_last=(6, 0))] if rule.weekdays else []
    for weekday, n in rule.nth:
        names.append(f"the {_ordinal(n) if n else 'last'} {_DAY_NAMES[weekday]} of the month")
    return _joined(names)


def _months(rule: DayRule) -> str:
    if len(rule.months) == 12:
        return ""
    return f"in {_listed(rule.months, lambda month: _MONTH_NAMES[month], after_last=(12, 1))}"


def _listed(values: tuple[int, ...], name: Callable[[int], str], *, after_last: tuple[int, int] | None = None) -> str:
    """Three and more in a row become a range; where the first value comes `after_last`, also around the end."""
    groups: list[list[int]] = []
    for value in values:
        if groups and value == groups[-1][-1] + 1:
            groups[-1].append(value)
        else:
            groups.append([value])
    if len(groups) > 1 and (groups[-1][-1], groups[0][0]) == after_last:
        groups[-1] += groups.pop(0)
    words = []
    for group in groups:
        if len(group) > 2:
            words.append(f"{name(group[0])} to {name(group[-1])}")
        else:
            words += [name(value) for value in group]
    return _joined(words)


def _joined(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _ordinal(number: int) -> str:
    return f"{number}{_suffix(number)}"


def _suffix(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
