"""Ending processes for good: TERM and CONT, a grace, then KILL; each through its own pidfd, never by number."""

import contextlib
import os
import signal

from cronward.launcher.process_tree import Process
from cronward.protocol.identity import start_ticks

GIVE_UP_MS = 10_000
"""A process that survives KILL this long (stuck in the kernel) is counted and left."""


class Ladder:
    """Where one tree stands on its way down. Times are monotonic ms."""

    def __init__(self, grace_ms: int) -> None:
        self._grace_ms = grace_ms
        self._begun_ms: int | None = None
        self._terminated: set[tuple[int, int]] = set()

    def step(self, left: list[Process], now_ms: int) -> bool:
        """Acts on the processes that are left now. True when nothing more can be done."""
        if self._begun_ms is None:
            self._begun_ms = now_ms
        if not left:
            return True
        spent_ms = now_ms - self._begun_ms
        for process in left:
            if spent_ms >= self._grace_ms:
                send(process, signal.SIGKILL)
            elif (process.pid, process.start_ticks) not in self._terminated:
                self._terminated.add((process.pid, process.start_ticks))
                send(process, signal.SIGTERM, signal.SIGCONT)
        return spent_ms >= self._grace_ms + GIVE_UP_MS


def send(process: Process, *signals: signal.Signals) -> None:
    """Signals exactly this process. Nothing happens if it ended; one that we may not signal stays among those left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        pidfd = os.pidfd_open(process.pid)
        try:
            if start_ticks(process.pid) == process.start_ticks:
                for number in signals:
                    signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)
