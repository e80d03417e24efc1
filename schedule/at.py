"""One instant: ISO 8601 or digits (epoch ms), kept as ISO 8601 in UTC with milliseconds."""

import datetime as dt
import re

from cronward.protocol.job import DATE_MAX_MS
from cronward.schedule.refusal import refusal
from cronward.schedule.spans import spans
from cronward.schedule.zones import zone

PAST_GRACE_MS = 60_000
"""A one-shot may be this late at creation; then it is due at once."""
AHEAD_MAX_MS = 315_576_000_000
"""Ten years of 365.25 days."""

ALLOWED = "YYYY-MM-DD, optionally THH:MM[:SS[.fff]] and Z or ±HH:MM (UTC if left out), or epoch milliseconds"
DAY_MS = 86_400_000
CALENDAR_FIRST_MS, CALENDAR_LAST_MS = -62_135_500_000_000, 253_402_200_000_000
"""Most of a day inside datetime's range, on either side."""
CYCLE_YEARS, CYCLE_DAYS = 400, 146_097
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()

_ISO = re.compile(
    r"(?P<year>[0-9]{4}|[+-][0-9]{6})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,30}))?)?"
    r"(?P<offset>[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_DIGITS = re.compile(r"[0-9]{1,20}")


def parse_at(text: str) -> int:
    """The instant that `text` names, in epoch ms; UTC where it has no offset. Raises InvalidRequest."""
    text = text.strip()
    if _DIGITS.fullmatch(text):
        return _in_date_range(text, int(text), minimum_ms=1)
    match = _iso(text)
    return _in_date_range(text, _wall_ms(text, match) - _offset_ms(text, match["offset"]), minimum_ms=-DATE_MAX_MS)


def settle_at(text: str, now_ms: int) -> str:
    """The stored form. Refuses what is more than a minute past or more than ten years ahead."""
    at_ms = parse_at(text)
    if at_ms < now_ms - PAST_GRACE_MS:
        problem = f"is in the past: {_far(now_ms - at_ms)} ago; it is now {iso_utc(now_ms)}"
        raise refusal("schedule.at", problem, value=text, allowed="at most 60 seconds ago")
    if at_ms > now_ms + AHEAD_MAX_MS:
        problem = f"is too far ahead: {_far(at_ms - now_ms)}; it is now {iso_utc(now_ms)}"
        raise refusal("schedule.at", problem, value=text, allowed="at most 10 years ahead")
    return iso_utc(at_ms)


def at_in_zone(text: str, tz: str) -> str:
    """`text` read as wall time in the zone `tz` (for a command line that takes both): ISO 8601 in UTC.

    What has an offset, or is digits, means the same in every zone. A time that comes twice means the first; one that
    the zone leaves out is refused.
    """
    at_ms, exists = _in_zone(text, tz)
    if not exists:
        problem = f"does not exist in {tz}: the clocks jump over it"
        raise refusal("schedule.at", problem, value=text, allowed="a time that the zone's clocks show")
    return iso_utc(at_ms)


def around_in_zone_ms(text: str, tz: str) -> int:
    """The same in epoch ms, where a time that the zone leaves out is the moment of the jump. Raises InvalidRequest."""
    return _in_zone(text, tz)[0]


def _in_zone(text: str, tz: str) -> tuple[int, bool]:
    """The instant, and whether the zone's clocks show that time at all."""
    text = text.strip()
    zone(tz)
    match = _ISO.fullmatch(text)
    if match is None or match["offset"]:
        return parse_at(text), True
    wall_ms = _wall_ms(text, match)
    parse_at(text)
    wall_s, ms = divmod(wall_ms, 1000)
    for index, span in enumerate(spans(tz, wall_s - 2 * 86_400)):
        if wall_s < span.wall_start_s:
            if index == 0:
                break
            return span.start_s * 1000, False
        if wall_s < span.wall_end_s:
            return (wall_s - span.offset_s) * 1000 + ms, True
    return wall_s * 1000 + ms, True  # so far away no zone is laid out


def is_beyond_calendar(at_ms: int) -> bool:
    """Whether datetime has no such moment in some zone: schedules, and damaged rows, reach further than year 9999."""
    return not CALENDAR_FIRST_MS <= at_ms <= CALENDAR_LAST_MS


def iso_utc(at_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds, such as 2026-06-01T01:00:00.250Z; beyond the year 9999 with six digits."""
    cycles, in_cycle_ms = divmod(at_ms, CYCLE_DAYS * DAY_MS)
    instant = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=in_cycle_ms)  # noqa: DTZ001 - Z is written below
    year = instant.year + cycles * CYCLE_YEARS
    written_year = f"{year:04}" if 0 <= year <= 9999 else f"{year:+07}"
    return written_year + instant.isoformat(timespec="milliseconds")[4:] + "Z"


def _iso(text: str) -> re.Match[str]:
    match = _ISO.fullmatch(text)
    if match is None or match["year"] == "-000000":
        raise refusal("schedule.at", "is no timestamp", value=text, allowed=ALLOWED)
    return match


def _wall_ms(text: str, match: re.Match[str]) -> int:
    """The written date and time as if it were UTC."""
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    ms = int(f"{match['fraction'] or ''}000"[:3])
    end_of_day = (hour, minute, second) == (24, 0, 0) and not int(match["fraction"] or 0)
    if (hour > 23 and not end_of_day) or minute > 59 or second > 59:
        raise refusal("schedule.at", "has no such time of day", value=text, allowed="00:00:00 to 23:59:59, or 24:00:00")
    cycles, year_in_cycle = divmod(year, CYCLE_YEARS)
    try:
        ordinal = dt.date(year_in_cycle + CYCLE_YEARS, month, day).toordinal()
    except ValueError:
        problem = "names a day that the calendar does not have"
        raise refusal("schedule.at", problem, value=text, allowed=ALLOWED) from None
    days = ordinal + (cycles - 1) * CYCLE_DAYS - _EPOCH_DAY
    return days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + ms


def _offset_ms(text: str, offset: str | None) -> int:
    if offset is None or offset in "Zz":
        return 0
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    if hours > 23 or minutes > 59:
        raise refusal("schedule.at", "has no such offset", value=text, allowed="-23:59 to +23:59")
    return (hours * 60 + minutes) * 60_000 * (-1 if offset[0] == "-" else 1)


def _in_date_range(text: str, at_ms: int, minimum_ms: int) -> int:
    if not minimum_ms <= at_ms <= DATE_MAX_MS:
        raise refusal("schedule.at", "is out of range", value=text, allowed=f"1-{DATE_MAX_MS} ms, or {ALLOWED}")
    return at_ms


def _far(duration_ms: int) -> str:
    for unit, unit_ms in (("years", 31_557_600_000), ("days", DAY_MS), ("hours", 3_600_000), ("minutes", 60_000)):
        if duration_ms >= 2 * unit_ms:
            return f"{duration_ms // unit_ms} {unit}"
    return f"{duration_ms // 1000} seconds"
