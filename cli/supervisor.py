"""Keeps daemons running: waits for their words, their ends, signals and deadlines, and reaps every child."""

import ctypes
import os
import select
import signal
from collections.abc import Callable
from typing import NamedTuple

from cronward.cli.daemon import Daemon, Event
from cronward.protocol.clock import Clock

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD)
"""Ctrl-Z does nothing: a stopped reader of the daemons' logs would end up stopping them too."""

_PR_SET_CHILD_SUBREAPER = 36


class Signalled(NamedTuple):
    number: signal.Signals


class Ready(NamedTuple):
    daemon: Daemon


class Exited(NamedTuple):
    daemon: Daemon


Happening = Signalled | Ready | Exited


class Supervisor:
    """Owns this process's signals and children while it lives: it must be the only one that waits for them."""

    def __init__(self, daemons: list[Daemon], clock: Clock, on_line: Callable[[Daemon, bytes], None]) -> None:
        self._daemons = daemons
        self._clock = clock
        self._on_line = on_line
        become_subreaper()
        self._wakeup, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # A full pipe loses nothing: the wake-up is in it, and children are all asked for.
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in HANDLED:
            signal.signal(number, lambda *_: None)

    def wait(self, timeout_ms: int) -> list[Happening]:
        """Waits until something happens, at most `timeout_ms`, and says what did."""
        self._poll(timeout_ms)
        happened: list[Happening] = [Signalled(number) for number in self._read_signals()]
        happened += self._read_daemons()
        happened += self._reap()
        self._meet_deadlines()
        return happened

    def last_words(self) -> None:
        """Passes on what the daemons wrote before they ended. Their executors may hold the pipes open: no waiting."""
        for daemon in self._daemons:
            while lines := daemon.read_lines():
                for line in lines:
                    self._on_line(daemon, line)

    def _poll(self, timeout_ms: int) -> None:
        poller = select.poll()
        poller.register(self._wakeup, select.POLLIN)
        for daemon in self._daemons:
            poller.register(daemon.log_fd, select.POLLIN)
            if daemon.ready_fd is not None:
                poller.register(daemon.ready_fd, select.POLLIN)
        now = self._clock.mono_ms()
        deadlines = [daemon.deadline_ms - now for daemon in self._daemons if daemon.deadline_ms is not None]
        poller.poll(max(0, min([timeout_ms, *deadlines])))

    def _read_signals(self) -> list[signal.Signals]:
        try:
            numbers = os.read(self._wakeup, 4096)
        except BlockingIOError:
            return []
        return [signal.Signals(number) for number in numbers if number != signal.SIGCHLD]

    def _read_daemons(self) -> list[Happening]:
        happened: list[Happening] = []
        for daemon in self._daemons:
            for line in daemon.read_lines():
                self._on_line(daemon, line)
            if daemon.ready_fd is not None and _readable(daemon.ready_fd):
                daemon.read_ready()
                happened.append(Ready(daemon))
        return happened

    def _reap(self) -> list[Happening]:
        """Every child that has ended: the daemons, and whatever was left to this process by its parent's end."""
        happened: list[Happening] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return happened
            if pid == 0:
                return happened
            for daemon in self._daemons:
                if daemon.pid == pid:
                    daemon.reaped(status)
                    happened.append(Exited(daemon))

    def _meet_deadlines(self) -> None:
        now = self._clock.mono_ms()
        for daemon in self._daemons:
            if daemon.deadline_ms is not None and daemon.deadline_ms <= now:
                daemon.on(Event.DUE)


def become_subreaper() -> None:
    """Makes executors that outlive their launcher children of this process, so that somebody reaps them (prctl(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])
