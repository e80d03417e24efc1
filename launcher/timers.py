"""Duties that come round by the clock."""

from collections.abc import Callable

from cronward.protocol import log
from cronward.protocol.clock import Clock

Duty = Callable[[int], int]
"""Takes the monotonic time in ms, returns in how many ms it wants to be called again."""

WAIT_MAX_MS = 1000


class Timers:
    """Runs each duty when it is due. A duty that fails is logged and tried again a second later."""

    def __init__(self, clock: Clock, *duties: Duty) -> None:
        self._clock = clock
        self._due_ms = dict.fromkeys(duties, clock.mono_ms())

    def wait_ms(self) -> int:
        """How long the loop may sleep, at most a second."""
        now_ms = self._clock.mono_ms()
        return max(0, min(WAIT_MAX_MS, *(due_ms - now_ms for due_ms in self._due_ms.values())))

    def run(self) -> None:
        now_ms = self._clock.mono_ms()
        for duty, due_ms in self._due_ms.items():
            if due_ms <= now_ms:
                self._due_ms[duty] = now_ms + self._guarded(duty, now_ms)

    def _guarded(self, duty: Duty, now_ms: int) -> int:
        try:
            return duty(now_ms)
        except Exception:
            log.error("launcher.duty_failed", f"{duty.__qualname__} failed; it is tried again", exc_info=True)
            return WAIT_MAX_MS
