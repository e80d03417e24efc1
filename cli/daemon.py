"""One supervised process: started, ready, started again when it ends, stopped. A total table of states and events."""

import enum
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from cronward.protocol.clock import Clock

BACKOFF_FIRST_MS = 250
BACKOFF_MAX_MS = 30_000
SOUND_MS = 10_000
"""A daemon that was ready for this long starts its next backoff from the beginning."""

STOP_PATIENCE_MS = 15_000
"""A daemon that does not end on TERM within this is killed; that costs no run."""

_LINE_MAX_BYTES = 64 * 1024
_OURS = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")


class State(enum.StrEnum):
    IDLE = "idle"
    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Event(enum.StrEnum):
    START = "start"
    READY = "ready"
    EXITED = "exited"
    DUE = "due"
    """Its deadline has come: the end of the backoff, or of the patience while it stops."""
    STOP = "stop"


class Action(enum.StrEnum):
    NONE = "none"
    SPAWN = "spawn"
    BACK_OFF = "back_off"
    TERMINATE = "terminate"
    KILL = "kill"


class Step(NamedTuple):
    """What an event does."""

    state: State
    action: Action = Action.NONE


def _stay(state: State) -> Step:
    return Step(state)


TRANSITIONS: dict[State, dict[Event, Step | None]] = {
    State.IDLE: {
        Event.START: Step(State.STARTING, Action.SPAWN),
        Event.READY: None,
        Event.EXITED: None,
        Event.DUE: _stay(State.IDLE),
        Event.STOP: Step(State.STOPPED),
    },
    State.STARTING: {
        Event.START: _stay(State.STARTING),
        Event.READY: Step(State.READY),
        Event.EXITED: Step(State.WAITING, Action.BACK_OFF),
        Event.DUE: _stay(State.STARTING),
        Event.STOP: Step(State.STOPPING, Action.TERMINATE),
    },
    State.READY: {
        Event.START: _stay(State.READY),
        Event.READY: _stay(State.READY),
        Event.EXITED: Step(State.WAITING, Action.BACK_OFF),
        Event.DUE: _stay(State.READY),
        Event.STOP: Step(State.STOPPING, Action.TERMINATE),
    },
    State.WAITING: {
        Event.START: _stay(State.WAITING),
        Event.READY: None,
        Event.EXITED: None,
        Event.DUE: Step(State.STARTING, Action.SPAWN),
        Event.STOP: Step(State.STOPPED),
    },
    State.STOPPING: {
        Event.START: _stay(State.STOPPING),
        Event.READY: _stay(State.STOPPING),
        Event.EXITED: Step(State.STOPPED),
        Event.DUE: Step(State.STOPPING, Action.KILL),
        Event.STOP: _stay(State.STOPPING),
    },
    State.STOPPED: {
        Event.START: _stay(State.STOPPED),
        Event.READY: None,
        Event.EXITED: None,
        Event.DUE: _stay(State.STOPPED),
        Event.STOP: _stay(State.STOPPED),
    },
}
"""None is what cannot happen."""


def backoff_ms(failures: int) -> int:
    """How long to wait before the next start after so many failures in a row: 0.25 s doubling to 30 s."""
    return int(min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** min(failures, 16)))


class Daemon:
    """A process with its own session, so that a terminal's Ctrl-C or hang-up does not reach it. It says that it is
    ready by a byte on a descriptor of its own (--ready-fd). Its output, and that of what it leaves behind, comes
    through one pipe for all its lives."""

    def __init__(self, name: str, command: list[str], clock: Clock, environ: Mapping[str, str]) -> None:
        self.name = name
        self.state = State.IDLE
        self.pid: int | None = None
        self.exit_code: int | None = None
        """Of the last process that ended; negative for a signal."""
        self.deadline_ms: int | None = None
        self.pause_ms = 0
        """The backoff before the start that comes next."""
        self.ready_fd: int | None = None
        self._command = command
        self._clock = clock
        self._environ = {key: value for key, value in environ.items() if key not in _OURS}
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._ready_at_ms: int | None = None
        self._partial = b""
        self.log_fd, self._log_write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._log_write_fd, True)

    def on(self, event: Event) -> None:
        """Applies an event."""
        step = TRANSITIONS[self.state][event]
        if step is None:
            raise AssertionError(f"{self.name} is {self.state}: {event} cannot happen")
        before, self.state = self.state, step.state
        match step.action:
            case Action.SPAWN:
                self._spawn()
            case Action.BACK_OFF:
                self._back_off(was_ready=before is State.READY)
            case Action.TERMINATE:
                self.send(signal.SIGTERM)
                self.deadline_ms = self._clock.mono_ms() + STOP_PATIENCE_MS
            case Action.KILL:
                self.send(signal.SIGKILL)
                self.deadline_ms = None
            case Action.NONE:
                pass

    def send(self, number: signal.Signals) -> None:
        """Signals the process, which is not reaped yet, so that its pid is its own."""
        if self.pid is not None:
            os.kill(self.pid, number)

    def reaped(self, status: int) -> None:
        """Its process has ended with this wait status."""
        self.exit_code = os.waitstatus_to_exitcode(status)
        if self._process is not None:
            self._process.returncode = self.exit_code
        self.pid = None
        self.deadline_ms = None
        self.close_ready()
        self.on(Event.EXITED)

    def read_ready(self) -> None:
        """A byte on the descriptor means ready; its end without one means that the process is about to end."""
        if self.ready_fd is not None and os.read(self.ready_fd, 1):
            self._ready_at_ms = self._clock.mono_ms()
            self.on(Event.READY)
        self.close_ready()

    def read_lines(self) -> list[bytes]:
        """Whole lines that are there now."""
        try:
            data = os.read(self.log_fd, _LINE_MAX_BYTES)
        except BlockingIOError:
            return []
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _LINE_MAX_BYTES:
            lines, self._partial = [*lines, self._partial], b""
        return [line for line in lines if line]

    def close_ready(self) -> None:
        if self.ready_fd is not None:
            os.close(self.ready_fd)
            self.ready_fd = None

    def _spawn(self) -> None:
        self.deadline_ms = self._ready_at_ms = None
        self.ready_fd, ready_write_fd = os.pipe2(os.O_CLOEXEC)
        try:
            self._process = subprocess.Popen(
                [*self._command, "--ready-fd", str(ready_write_fd)],
                stdin=subprocess.DEVNULL,
                stdout=self._log_write_fd,
                stderr=self._log_write_fd,
                env=self._environ,
                pass_fds=(ready_write_fd,),
                start_new_session=True,
            )
            self.pid = self._process.pid
        except OSError as error:  # no memory, no process to spare: later there may be
            os.write(self._log_write_fd, f"the {self.name} cannot be started: {error}\n".encode())
            self.close_ready()
            self.on(Event.EXITED)
        finally:
            os.close(ready_write_fd)

    def _back_off(self, *, was_ready: bool) -> None:
        now = self._clock.mono_ms()
        if was_ready and self._ready_at_ms is not None and now - self._ready_at_ms >= SOUND_MS:
            self._failures = 0
        self.pause_ms = backoff_ms(self._failures)
        self.deadline_ms = now + self.pause_ms
        self._failures += 1
