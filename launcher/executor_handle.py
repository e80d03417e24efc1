"""One executor process of this launcher, as a state machine over what it says on its pair."""

import contextlib
import enum
import os
import signal
import socket
from collections.abc import Callable
from typing import Protocol

import msgspec

from cronward.launcher.live import LiveRun
from cronward.launcher.pidfds import open_pidfd
from cronward.protocol import log, pair
from cronward.protocol.identity import ProcessIdentity

RSS_MAX_KIB = 200 * 1024
"""An executor that has grown beyond this is replaced between two runs."""


class State(enum.Enum):
    STARTING = "starting"
    """Spawned; it has not said that it is ready."""
    READY = "ready"
    """Idle."""
    BUSY = "busy"
    """It was given a run and has not said that it is free."""
    RETIRING = "retiring"
    """Its pair is closed: it ends by itself."""


class End(msgspec.Struct, frozen=True):
    """End-of-file on the pair, or nothing that can be read: the executor died or is broken."""


Event = pair.FromExecutor | End


class Owner(Protocol):
    """What an executor tells its pool."""

    def on_ready(self, executor: "Executor") -> None:
        """It is idle."""
        ...

    def on_free(self, executor: "Executor", live: LiveRun, free: pair.Free) -> None:
        """It closed the lock of `live`."""
        ...

    def on_retire(self, executor: "Executor") -> None:
        """Its pair is about to be closed."""
        ...


class Executor:
    """`pid` is None until Ready for one that was forked by another. `pidfd` refers to this very process, whatever
    happens to its number.

    `live` is the run that it was given; an executor that cannot be heard any more is retiring with it, until its death
    or a moment's silence hands the run over to those who watch locks.
    """

    def __init__(self, owner: Owner, pid: int | None, end: socket.socket, started_ms: int) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid) if pid is not None else None
        self.end = end
        self.since_ms = started_ms  # when it was spawned, later when it began to retire
        self.state = State.STARTING
        self.identity: ProcessIdentity | None = None
        self.live: LiveRun | None = None
        self.fit = True
        self.keeps_run = False
        """It may hold a run that was taken from `live`: it must not be killed."""
        self._owner = owner

    def receive(self) -> None:
        """Takes everything that is in the pair."""
        while self.state is not State.RETIRING:
            try:
                packet = self.end.recv(pair.PACKET_MAX_BYTES)
                event: Event = pair.decode_from_executor(packet) if packet else End()
            except BlockingIOError:
                return
            except (OSError, msgspec.DecodeError) as error:
                log.warning("executor.unreadable", f"executor {self.pid} cannot be understood: {error}", pid=self.pid)
                event = End()
            TABLE[self.state, type(event)](self, event)

    def cancel(self, run: str, why: str) -> None:
        """Passes a cancel on. One that does not fit into the pair now is repeated by the scheduler anyway."""
        with contextlib.suppress(OSError):
            self.end.send(pair.encode(pair.CancelRun(run, why)), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def retire(self) -> None:
        """Closes the pair, which orders the executor to end."""
        if self.state is not State.RETIRING:
            self._owner.on_retire(self)
            self.state = State.RETIRING
            self.end.close()

    def kill(self) -> None:
        """Only for one that holds no run. One that never said who it is sees the end of its pair at most."""
        if self.pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def close(self) -> None:
        """The process is gone."""
        self.retire()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


# One function for each thing that a packet can do.


def _ready(executor: Executor, event: Event) -> None:
    assert isinstance(event, pair.Ready)  # noqa: S101 - the table dispatches by type
    pidfd = open_pidfd(event.executor)
    if pidfd is None or executor.pid not in (None, event.executor.pid):
        _protest(executor, event)
        return
    if executor.pidfd is not None:
        os.close(executor.pidfd)
    executor.pid, executor.pidfd, executor.identity = event.executor.pid, pidfd, event.executor
    executor._owner.on_ready(executor)
    executor.state = State.READY


def _free(executor: Executor, event: Event) -> None:
    assert isinstance(event, pair.Free)  # noqa: S101 - the table dispatches by type
    live = executor.live
    if live is None or live.run != event.run:
        _protest(executor, event)
        return
    executor.live = None
    executor._owner.on_free(executor, live, event)
    if executor.fit and event.fit and event.rss_kib <= RSS_MAX_KIB:
        executor._owner.on_ready(executor)
        executor.state = State.READY
    else:
        log.info("executor.retired", "an executor is replaced", pid=executor.pid, fit=event.fit, rss_kib=event.rss_kib)
        executor.retire()


def _retire(executor: Executor, event: Event) -> None:
    executor.retire()


def _unfit_busy(executor: Executor, event: Event) -> None:
    """Its run was on the way when it said so: it does that one first."""
    executor.fit = False


def _protest(executor: Executor, event: Event) -> None:
    """A packet that this state does not know: the executor is broken; its run, if any, is followed by its lock."""
    log.error("executor.unexpected", f"executor {executor.pid} said {event!r} while {executor.state.value}")
    executor.retire()


def _ignore(executor: Executor, event: Event) -> None:
    """The pair is closed."""


TABLE: dict[tuple[State, type[Event]], Callable[[Executor, Event], None]] = {
    (State.STARTING, pair.Ready): _ready,
    (State.STARTING, pair.Free): _protest,
    (State.STARTING, pair.Unfit): _retire,
    (State.STARTING, End): _retire,
    (State.READY, pair.Ready): _protest,
    (State.READY, pair.Free): _protest,
    (State.READY, pair.Unfit): _retire,
    (State.READY, End): _retire,
    (State.BUSY, pair.Ready): _protest,
    (State.BUSY, pair.Free): _free,
    (State.BUSY, pair.Unfit): _unfit_busy,
    (State.BUSY, End): _retire,
    (State.RETIRING, pair.Ready): _ignore,
    (State.RETIRING, pair.Free): _ignore,
    (State.RETIRING, pair.Unfit): _ignore,
    (State.RETIRING, End): _ignore,
}
"""Every state × every packet."""
