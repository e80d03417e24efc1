"""The zone database on this machine: has it changed, and forgetting what was read from the old one."""

import importlib.util
import zoneinfo
from pathlib import Path

from cronward.schedule import cron, spans, zones

_TELLING = ("", "tzdata.zi", "zone1970.tab", "UTC", "Europe/Berlin", "America/New_York")
"""Files that every release of the database replaces, below each of its directories ("" is the directory)."""


def fingerprint() -> str:
    """Changes when the database is updated, on the system or as the package tzdata."""
    marks = []
    for root in (*zoneinfo.TZPATH, *_package_roots()):
        for name in _TELLING:
            try:
                found = (Path(root) / name).stat()
            except OSError:
                continue
            marks.append(f"{root}/{name} {found.st_mtime_ns} {found.st_size}")
    return "\n".join(marks)


def _package_roots() -> list[str]:
    package = importlib.util.find_spec("tzdata")
    return [str(Path(place) / "zoneinfo") for place in (package.submodule_search_locations or [])] if package else []


def forget() -> None:
    """What is asked from now on is read anew."""
    zoneinfo.ZoneInfo.clear_cache()
    zones.zone.cache_clear()
    spans.forget()
    cron.forget()
