"""Stagger: hourly work of many jobs is spread, each job by an offset of its own that never changes."""

import hashlib
import re

from cronward.schedule.grammar import split

DEFAULT_MS = 300_000
_HOURS = re.compile(r"(?:[*?]|[0-9]+(?:-[0-9]+)?)(?:/[0-9]+)?")


def default_stagger_ms(expr: str) -> int:
    """The window for a job that names none: five minutes at minute 0 of a starred hour, otherwise none. An alias such
    as @hourly is an exact time. `expr` is a valid expression."""
    if expr.strip().startswith("@"):
        return 0
    texts = split(expr)
    second, minute, hour = texts[:3] if len(texts) >= 6 else ["0", *texts[:2]]
    items = hour.split(",")
    spread = all(_HOURS.fullmatch(item) for item in items) and any(item[0] in "*?" for item in items)
    return DEFAULT_MS if (second, minute) == ("0", "0") and spread else 0


def offset_ms(job_id: str, window_ms: int) -> int:
    """The job's offset into its window."""
    if window_ms <= 1:
        return 0
    return int.from_bytes(hashlib.sha256(job_id.encode()).digest()[:4]) % window_ms
