"""The two clocks. Wall time places slots, monotonic time measures durations; both are injected everywhere."""

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time for one process."""

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch; may jump either way."""
        ...

    def mono_ms(self) -> int:
        """Milliseconds of CLOCK_MONOTONIC, one scale for all processes of a boot; never goes back."""
        ...


class SystemClock:
    """The kernel's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
