"""Signals as bytes in a pipe, so that the loop sees them like everything else."""

import os
import signal
from types import FrameType

from cronward.launcher.readiness import Readiness

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class Signals:
    """Collects what arrives. SIGHUP is taken and means nothing; ignoring it would be inherited by executors."""

    def __init__(self, readiness: Readiness) -> None:
        self._read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        for number in HANDLED:
            signal.signal(number, _note)
        self._pending: set[int] = set()
        readiness.watch(self._read_fd, self._read)

    def take(self) -> set[int]:
        """Signals since the last call."""
        pending, self._pending = self._pending, set()
        return pending

    def _read(self) -> None:
        self._pending.update(os.read(self._read_fd, 4096))


def _note(number: int, frame: FrameType | None) -> None:
    """The byte in the pipe is all that is needed."""
