"""The one grammar of cron expressions: from text to plain values. Nothing else reads an expression.

Five fields; six with seconds first; seven with the year last. All that is particular to our rules (ranges, steps, H,
names, wrap-around, what is refused and how) is decided here, so that what follows only sees plain values.
"""

import functools
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from cronward.schedule.fields import (
    DAY_OF_MONTH,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    YEAR,
    Field,
    Place,
    expand,
    number,
    placed_by,
    problem,
)
from cronward.schedule.refusal import refusal

LENGTH_MAX = 200
NEAREST_MAX = 6
"""Each nearest weekday takes a search of its own."""
LAST_WEEKDAY_OF_MONTH = 31
"""LW as a nearest-weekday: the one nearest to the 31st, or to the last day of a shorter month."""

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LAYOUTS: dict[int, tuple[Field, ...]] = {
    5: (MINUTE, HOUR, DAY_OF_MONTH, MONTH, WEEKDAY),
    6: (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, WEEKDAY),
    7: (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, WEEKDAY, YEAR),
}
_HASH = re.compile(r"(?<![A-Z@])H(?![A-Z])")


class DayRule(NamedTuple):
    """Which days match. Empty tuples and False mean: nothing of that sort was written.

    `days` and `weekdays` are plain values, `last` is L, `nearest` holds the days of 15W and LW, `nth` holds
    (weekday, n) of 1#2, n 0 being the last one. `both` says that the two day fields must match together.
    """

    days: tuple[int, ...]
    last: bool
    nearest: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    nth: tuple[tuple[int, int], ...]
    years: tuple[int, ...] | None
    both: bool


class Expression(NamedTuple):
    """An expression as plain values. `fixed_time`: neither minute nor hour begins with a star, so that a change of
    the clocks must neither lose nor repeat a run."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    day_rule: DayRule
    fixed_time: bool


def uses_hash(expr: str) -> bool:
    """Whether the values depend on the job's id."""
    return _HASH.search(expr.upper()) is not None


def hashes_days_of_years(expr: str) -> bool:
    """Whether the day, month or weekday is H and years are named: such days may not be there in those years."""
    texts = split(expr)
    return len(texts) == 7 and texts[6] not in ("*", "?") and any(_HASH.search(text) for text in texts[3:6])


def parse(expr: str, job_id: str) -> Expression:
    """`expr` as plain values, H where the job has it. Raises InvalidRequest for `schedule.expr`."""
    return _placed(expr, placed_by(job_id))


def extremes(expr: str) -> Iterator[Expression]:
    """`expr` for jobs whose H falls on the first or on the last possible day, in each month: where one of these never
    comes, it depends on the job's id whether the expression ever does. Raises InvalidRequest."""
    for late, month in itertools.product((False, True), range(MONTH.size)):
        yield _placed(expr, functools.partial(_at_extreme, late, month))


def _at_extreme(late: bool, month: int, field: str, places: int) -> int:
    return min(month, places - 1) if field == MONTH.name else (places - 1) * late


def _placed(expr: str, place: Place) -> Expression:
    texts = split(expr)
    years: tuple[int, ...] | None = None
    if len(texts) == 7:
        year_text = texts[-1]
        years = None if year_text in ("*", "?") else _plain(YEAR, year_text, place)
    second, minute, hour, day, month, weekday = texts[:6] if len(texts) >= 6 else ["0", *texts]
    days, nearest, last = _days_of_month(day, place)
    weekdays, nth = _weekdays(weekday, place)
    rule = DayRule(
        days=days,
        last=last,
        nearest=nearest,
        months=_plain(MONTH, month, place),
        weekdays=weekdays,
        nth=nth,
        years=years,
        both=_starred(day) or _starred(weekday),
    )
    return Expression(
        seconds=_plain(SECOND, second, place),
        minutes=_plain(MINUTE, minute, place),
        hours=_plain(HOUR, hour, place),
        day_rule=rule,
        fixed_time=not (_starred(minute) or _starred(hour)),
    )


def split(expr: str) -> list[str]:
    """The five, six or seven field texts in upper case, aliases replaced. Raises InvalidRequest."""
    if len(expr) > LENGTH_MAX:
        allowed = f"at most {LENGTH_MAX} characters"
        raise refusal("schedule.expr", f"has {len(expr)} characters", value=expr[:LENGTH_MAX], allowed=allowed)
    if not expr.isascii():
        raise refusal("schedule.expr", "is not plain text", value=expr, allowed="ASCII letters, digits and signs")
    text = expr.strip()
    if text.startswith("@"):
        text = _alias(text)
    texts = text.upper().split()
    if len(texts) not in _LAYOUTS:
        raise refusal(
            "schedule.expr",
            f"has {len(texts)} fields",
            value=expr,
            allowed="minute hour day-of-month month weekday; six fields with seconds first; seven with the year last",
            hint="" if texts else "every minute is '* * * * *'",
        )
    return texts


def _alias(text: str) -> str:
    meaning = ALIASES.get(text.lower())
    if meaning is None:
        hints = {
            "@reboot": "a start of the machine is no time; let systemd start the command",
            "@every": "use a schedule of kind 'every' for intervals",
        }
        hint = hints.get(text.lower().split()[0], "")
        raise refusal("schedule.expr", "is no known alias", value=text, allowed=", ".join(ALIASES), hint=hint)
    return meaning


def _starred(text: str) -> bool:
    return text[0] in "*?"


def _plain(field: Field, text: str, place: Place) -> tuple[int, ...]:
    return tuple(sorted({value for item in text.split(",") for value in expand(field, item, place)}))


_NEAREST = re.compile(r"([0-9]{1,6})W")


def _days_of_month(text: str, place: Place) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Plain days, days whose nearest weekday is meant, and whether the last day is."""
    plain: set[int] = set()
    nearest: set[int] = set()
    items = text.split(",")
    for item in items:
        if item == "LW":
            nearest.add(LAST_WEEKDAY_OF_MONTH)
        elif match := _NEAREST.fullmatch(item):
            nearest.add(number(DAY_OF_MONTH, match[1], item))
        elif item != "L":
            plain.update(expand(DAY_OF_MONTH, item, place))
    if len(nearest) > NEAREST_MAX:
        fault = f"W is used for {len(nearest)} days"
        raise problem(DAY_OF_MONTH, text, fault, allowed=f"W for at most {NEAREST_MAX} days")
    return tuple(sorted(plain)), tuple(sorted(nearest)), "L" in items


_NTH = re.compile(r"([0-9A-Z]+)#([0-9A-Z]+)")
_LAST = re.compile(r"L([0-9]+|[A-Z]{3})|([0-9]+|[A-Z]{3})L")


def _weekdays(text: str, place: Place) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Plain weekdays, and (weekday, n) for the n-th of the month, n 0 for the last."""
    plain: set[int] = set()
    nth: set[tuple[int, int]] = set()
    for item in text.split(","):
        if item == "L":
            raise problem(WEEKDAY, item, "L needs a weekday", "Saturday is 6, the last Saturday of the month 6L")
        if match := _LAST.fullmatch(item):
            nth.add((number(WEEKDAY, match[1] or match[2], item) % 7, 0))
        elif match := _NTH.fullmatch(item):
            nth.add((number(WEEKDAY, match[1], item) % 7, _which(item, match[2])))
        else:
            plain.update(expand(WEEKDAY, item, place))
    return tuple(sorted(plain)), tuple(sorted(nth))


def _which(item: str, text: str) -> int:
    if text == "L":
        return 0
    if text not in ("1", "2", "3", "4", "5"):
        raise problem(WEEKDAY, item, "a month has no such weekday", allowed="weekday#1 to weekday#5, weekday#L")
    return int(text)
