"""Fixed intervals: slots lie on the grid anchor + k × interval, whatever runs do."""

from cronward.protocol.job import DATE_MAX_MS


def next_every_ms(interval_ms: int, anchor_ms: int, after_ms: int) -> int | None:
    """The first grid point strictly later than `after_ms`; the anchor itself is one. None beyond the date range."""
    steps = max(0, (after_ms - anchor_ms) // interval_ms + 1)
    slot_ms = anchor_ms + steps * interval_ms
    return slot_ms if slot_ms <= DATE_MAX_MS else None
