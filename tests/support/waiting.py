"""Waiting for a named condition with a deadline."""

import time
from collections.abc import Callable

DEADLINE_S = 20.0
POLL_S = 0.005


class Overdue(AssertionError):
    """The condition did not come true in time."""


def wait_until(
    condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S, poll_s: float = POLL_S
) -> None:
    """Returns as soon as `condition` holds. Raises Overdue that says `what` was waited for."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= end:
            raise Overdue(f"not within {deadline_s:g} s: {what}")
        time.sleep(poll_s)


def now_ms() -> int:
    """Wall time in epoch milliseconds."""
    return time.time_ns() // 1_000_000
