"""Time zones by their IANA name. The zone of the host plays no part anywhere."""

import difflib
import functools
import re
import zoneinfo
from zoneinfo import ZoneInfo

from cronward.protocol.errors import InvalidRequest
from cronward.schedule.refusal import refusal

ALLOWED = "an IANA zone name such as Europe/Berlin, or UTC"
# Upper case first: that leaves out posix/, right/ (leap seconds), posixrules and localtime (the host's own zone).
# Factory is the name of a machine whose zone was never set.
NAME_MAX = 100
"""Looking for the file of a name of thousands of parts exceeds the interpreter's depth."""
_NAME = re.compile(r"(?!Factory$)[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
_ABBREVIATIONS = {
    "BST": "Europe/London",
    "CDT": "America/Chicago",
    "CEST": "Europe/Berlin",
    "CST": "America/Chicago",
    "EDT": "America/New_York",
    "EEST": "Europe/Helsinki",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MDT": "America/Denver",
    "MSK": "Europe/Moscow",
    "PDT": "America/Los_Angeles",
    "PST": "America/Los_Angeles",
    "WEST": "Europe/Lisbon",
}
_NEVER_SUMMER_TIME = {"EST": "America/New_York", "MST": "America/Denver", "HST": "Pacific/Honolulu"}
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])0?(\d{1,2})(?::?00)?", re.IGNORECASE | re.ASCII)


@functools.lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone called `name`, exactly. Raises InvalidRequest for `schedule.tz`, with a hint; never falls back."""
    if len(name) <= NAME_MAX and _NAME.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise _unknown(name)


def warning(name: str) -> str | None:
    """What an operator should know about a zone that is legal and seldom meant."""
    meant = _NEVER_SUMMER_TIME.get(name)
    return f"{name} never has daylight saving time; {meant} follows the clocks there" if meant else None


def _unknown(name: str) -> InvalidRequest:
    problem = "no zone is given" if not name.strip() else "is no known time zone"
    return refusal("schedule.tz", problem, value=name, allowed=ALLOWED, hint=_hint(name))


def _hint(name: str) -> str:
    bare = name.strip().strip("\"'").strip()
    if match := _OFFSET.fullmatch(bare):
        # POSIX counts west of Greenwich as positive, and so do these names.
        reverse = "-" if match[1] == "+" else "+"
        return f"a fixed offset is written Etc/GMT{reverse}{int(match[2])} (the sign is reversed in these names)"
    if bare.upper() in _ABBREVIATIONS:
        return f"abbreviations are ambiguous and have no daylight saving time; {_ABBREVIATIONS[bare.upper()]} is a zone"
    known = {known.lower(): known for known in zoneinfo.available_timezones() if _NAME.fullmatch(known)}
    if bare.lower() in known:
        return f"write {known[bare.lower()]}, without quotes and spelt exactly so"
    close = difflib.get_close_matches(bare.lower()[:64], known, n=3)
    return "did you mean " + " or ".join(known[match] for match in close) + "?" if close else ""
