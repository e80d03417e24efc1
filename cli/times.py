"""Instants and durations as people read and write them. Every shown time of day carries its zone."""

from datetime import UTC, datetime, timedelta, tzinfo

from cronward.schedule.at import is_beyond_calendar, iso_utc


def duration(ms: int) -> str:
    """Short and at most two units: `80 ms`, `1.2 s`, `42 s`, `3 min`, `1 h 30 min`, `2 d 4 h`."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    seconds = ms // 1000
    if seconds < 120:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if hours < 2:
        return f"{minutes} min"
    if days < 2:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{days} d {hours % 24} h" if hours % 24 else f"{days} d"


def relative(at_ms: int, now_ms: int) -> str:
    """`in 4 min`, `12 s ago`, `now`."""
    distance = abs(at_ms - now_ms)
    if distance < 1000:
        return "now"
    text = _coarse(distance)
    return f"in {text}" if at_ms > now_ms else f"{text} ago"


def _coarse(ms: int) -> str:
    """One unit, rounded."""
    for unit, size, limit in (("s", 1000, 90_000), ("min", 60_000, 90 * 60_000), ("h", 3_600_000, 48 * 3_600_000)):
        if ms < limit:
            return f"{round(ms / size)} {unit}"
    return f"{round(ms / 86_400_000)} d"


def local(at_ms: int, zone: tzinfo | None = None) -> datetime:
    """The instant in `zone`, or in the zone of this terminal."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).astimezone(zone)


def stamp(at_ms: int, zone: tzinfo | None = None) -> str:
    """`Wed 2026-12-02 13:00:00 +01:00 CET`; beyond the calendar as ISO 8601 in UTC."""
    if is_beyond_calendar(at_ms):
        return iso_utc(at_ms)
    when = local(at_ms, zone)
    return f"{when:%a} {when.year:04}-{when:%m-%d %H:%M:%S} {_offset(when)}{_abbreviation(when)}"


def short_stamp(at_ms: int, now_ms: int, zone: tzinfo | None = None, *, seconds: bool = False) -> str:
    """For tables: `13:00 CET` (or `13:00:00 CET`) on the same day, else `12-02 13:00 CET`, with the year if it is
    another one. Beyond the calendar ISO 8601 in UTC."""
    if is_beyond_calendar(at_ms):
        return iso_utc(at_ms)
    when, today = local(at_ms, zone), local(now_ms, zone)
    if when.date() == today.date():
        text = f"{when:%H:%M:%S}" if seconds else f"{when:%H:%M}"
    elif when.year == today.year:
        text = f"{when:%m-%d %H:%M}"
    else:
        text = f"{when.year:04}-{when:%m-%d %H:%M}"
    return f"{text} {zone_mark(when)}"


def clock_time(at_ms: int) -> str:
    """`13:00:00`, for lines whose heading names the zone."""
    return f"{local(at_ms):%H:%M:%S}"


def zone_mark(when: datetime) -> str:
    """The zone's abbreviation, or its offset where it has none (`+0530`)."""
    name = when.tzname() or ""
    return name if name.isalpha() else _offset(when)


def _offset(when: datetime) -> str:
    """`+01:00`; with seconds where a zone had them, long ago."""
    text = f"{when:%z}"
    return ":".join([text[:3], *(text[at : at + 2] for at in range(3, len(text), 2))])


def _abbreviation(when: datetime) -> str:
    name = when.tzname() or ""
    return f" {name}" if name.isalpha() else ""
