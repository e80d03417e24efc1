"""Durations as people write them, on the command line and in `pacing`."""

import re

DURATION_MAX_MS = 8_640_000_000_000_000
TEXT_MAX = 100
"""Nobody writes a longer one, and looking for units in a long row of digits takes time that grows with its square."""

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h|d)", re.IGNORECASE | re.ASCII)
_PLAIN = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def parse_duration_ms(text: str) -> int | None:
    """`90s`, `10m`, `1h30m`, `0.5h`, a bare number being milliseconds; None if it is none of these or too long."""
    text = text.strip()
    if len(text) > TEXT_MAX:
        return None
    if _PLAIN.fullmatch(text):
        total = float(text)
    else:
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            return None
        total = sum(float(number) * _UNITS_MS[unit.lower()] for number, unit in parts)
    return round(total) if total <= DURATION_MAX_MS else None


def interval(ms: int) -> str:
    """An interval exactly, in the grammar that `parse_duration_ms` reads: `10m`, `1h30m`, `1500ms`."""
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, _UNITS_MS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0ms"
