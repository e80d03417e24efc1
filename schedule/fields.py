"""One field of a cron expression, and the plain values that a piece of it stands for."""

import hashlib
import re
from collections.abc import Callable
from typing import NamedTuple

from cronward.protocol.errors import InvalidRequest
from cronward.schedule.refusal import refusal


class Field(NamedTuple):
    """`low` to `high` may be written; `size` values follow each other in a circle from `low` (weekday 7 is 0 again).
    `hash_size` is the part of the circle, from `low`, that a bare H picks from."""

    name: str
    low: int
    high: int
    size: int
    hash_size: int
    names: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.low}-{self.high}{names}"


WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")

SECOND = Field("second", 0, 59, 60, 60)
MINUTE = Field("minute", 0, 59, 60, 60)
HOUR = Field("hour", 0, 23, 24, 24)
# A bare H keeps to days that every month has, so that no month is left out.
DAY_OF_MONTH = Field("day-of-month", 1, 31, 31, 28)
MONTH = Field("month", 1, 12, 12, 12, MONTHS)
WEEKDAY = Field("weekday", 0, 7, 7, 7, WEEKDAYS)
# croniter knows no later years. Years do not come round, so there is nothing to hash and no range may wrap.
YEAR = Field("year", 1970, 2099, 130, 0)

Place = Callable[[str, int], int]
"""Where H is put: of a field's name and how many places there are, one of them from 0."""


def placed_by(seed: str) -> Place:
    """Evenly, and only by `seed` (the job's id)."""

    def place(field: str, places: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{seed}\0{field}".encode()).digest()[:8]) % places

    return place


_ITEM = re.compile(
    r"(?:(?P<star>[*?])"
    r"|(?P<hash>H)(?:\((?P<from>[0-9A-Z]+)-(?P<to>[0-9A-Z]+)\))?"
    r"|(?P<first>[0-9A-Z]+)(?:-(?P<last>[0-9A-Z]+))?)"
    r"(?P<stepped>/(?P<step>[0-9]{0,6}))?"
)


def expand(field: Field, item: str, place: Place) -> list[int]:
    """The values of one comma-free, upper-case `item`, in the order in which it names them. Raises InvalidRequest."""
    match = _ITEM.fullmatch(item)
    if match is None:
        raise unreadable(field, item)
    step = _step(field, item, match["step"]) if match["stepped"] else 1
    if match["hash"]:
        return _hashed(field, item, (match["from"], match["to"]), step if match["stepped"] else None, place)
    top = field.low + field.size - 1
    if match["star"]:
        values = list(range(field.low, top + 1))
    elif match["last"]:
        values = _range(field, item, number(field, match["first"], item), number(field, match["last"], item))
    else:
        first = number(field, match["first"], item)
        values = list(range(_in_circle(field, first), top + 1)) if match["stepped"] else [first]
    return [_in_circle(field, value) for value in values[::step]]


def number(field: Field, text: str, item: str) -> int:
    """A number or name of `field`. Raises InvalidRequest."""
    if text in field.names:
        return field.low + field.names.index(text)
    if not text.isdecimal():
        raise unreadable(field, item)
    value = int(text[:6])
    if not field.low <= value <= field.high:
        raise problem(field, item, f"{text} is out of range", _range_hint(field, value))
    return value


def unreadable(field: Field, item: str) -> InvalidRequest:
    if not item:
        return problem(field, item, "an element of the list is empty", "remove the extra comma")
    hints = (hint for sign, hint in _SIGN_HINTS.items() if re.search(rf"(?<![A-Z]){sign}(?![A-Z])", item))
    return problem(field, item, "cannot be read", next(hints, ""))


def problem(field: Field, item: str, text: str, hint: str = "", allowed: str = "") -> InvalidRequest:
    """The refusal of a piece of `field`."""
    return refusal("schedule.expr", f"{field.name}: {text}", value=item, allowed=allowed or field.allowed, hint=hint)


_SIGN_HINTS = {
    r"\+": "there is no '+'; whether both day fields must match follows from their first character (docs/schedules.md)",
    "R": "there is no random R; H picks a value that stays the same for the job",
    "LW?": "L stands alone (last day of the month), as LW (its last weekday), or with one weekday: 5L or L5",
    "W": "W follows one day of the month, as in 15W, or is LW",
    "#": "write weekday#n with n from 1 to 5 or L, as in MON#1, in the weekday field",
    "H": "write H, H/5, H(1-5) or H(0-29)/10",
    "-": "a range has a number or name on both sides, as in 1-5",
}


def _step(field: Field, item: str, text: str) -> int:
    step = int(text or 0)
    if not 1 <= step <= field.size:
        fault = f"the step {step} is out of range" if text else "the step is missing"
        raise problem(field, item, fault, allowed=f"steps 1-{field.size}")
    return step


def _range(field: Field, item: str, first: int, last: int) -> list[int]:
    """From `first` through `last`, around the end of the circle if it has to be."""
    if first == last:
        return [first]
    first = _in_circle(field, first)
    if first <= last:
        return list(range(first, last + 1))
    if field is YEAR:
        raise problem(field, item, "the range runs backwards", "years do not come round again")
    return [*range(first, field.low + field.size), *range(field.low, last + 1)]


def _hashed(
    field: Field, item: str, window: tuple[str | None, str | None], step: int | None, place: Place
) -> list[int]:
    """H: one value, or with a step every step-th, from a place in the window."""
    low, high = field.low, field.low + field.hash_size - 1
    if window[0] is not None and window[1] is not None:
        low, high = number(field, window[0], item), number(field, window[1], item)
    if field is YEAR or low > high:
        raise problem(field, item, "H is not possible here", "H takes a rising range, and not in the year field")
    size = high - low + 1
    if step is not None and step > size:
        # Judged by the window, not by where the seed falls: the verdict must be the same for every job.
        raise problem(field, item, f"the step is larger than the range {low}-{high}", "", f"steps 1-{size}")
    apart = step or size
    return list(range(low + place(field.name, apart), high + 1, apart))


def _in_circle(field: Field, value: int) -> int:
    return (value - field.low) % field.size + field.low


def _range_hint(field: Field, value: int) -> str:
    if field is HOUR and value == 24:
        return "midnight is hour 0"
    if field in (MINUTE, SECOND) and value == 60:
        return f"the full {'hour' if field is MINUTE else 'minute'} is {field.name} 0"
    if field is DAY_OF_MONTH and value == 0:
        return "days begin with 1; with six fields the first one is seconds"
    if field is WEEKDAY:
        return "Sunday is 0 or 7" if value < YEAR.low else "a year needs seven fields, with seconds first"
    return ""
