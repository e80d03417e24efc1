"""Starting executor processes: exec for each, or a fork of one that has everything imported."""

import os
import socket
import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec

from cronward.protocol import log

INHERITED_FD = 3
"""Number of the one descriptor that a started process inherits beside the standard streams."""

EXECUTOR = (sys.executable, "-P", "-m", "cronward.executor")
ZYGOTE = (sys.executable, "-P", "-m", "cronward.executor.zygote")
"""Commands; `INHERITED_FD RUN_SOCKET_PATH` follow. -P: nothing is imported from the working directory."""


class Spawned(msgspec.Struct):
    """A process on its way to say Ready on the other end of `end`. `pid` is None until it does, where it was forked by
    another."""

    end: socket.socket
    pid: int | None


class Spawner(Protocol):
    """Executors come without delay for the loop, each in a session of its own, with nothing but its end of the pair."""

    def spawn(self) -> Spawned:
        """Starts one without waiting for it. Raises OSError."""
        ...

    def reset(self) -> None:
        """The last one was never ready: start the next from scratch."""
        ...


class ExecSpawner:
    """Each is started anew. The reference: about 50 ms of CPU."""

    def __init__(self, run_socket: str, command: Sequence[str] = EXECUTOR) -> None:
        self._argv = [*command, str(INHERITED_FD), run_socket]

    def spawn(self) -> Spawned:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                pid = _start(self._argv, theirs)
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        return Spawned(ours, pid)

    def reset(self) -> None:
        pass


class ZygoteSpawner:
    """Each is forked by a process that is started with the first. If that one dies, the next spawn starts another."""

    def __init__(self, run_socket: str, command: Sequence[str] = ZYGOTE) -> None:
        self._argv = [*command, str(INHERITED_FD), run_socket]
        self._zygote: socket.socket | None = None

    def spawn(self) -> Spawned:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._ask_for_fork(theirs)
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        return Spawned(ours, None)

    def reset(self) -> None:
        """Whatever hangs or is broken in the zygote ends with it: it exits at end-of-file."""
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _ask_for_fork(self, theirs: socket.socket) -> None:
        if self._zygote is not None:
            try:
                _send(self._zygote, theirs)
            except OSError as error:
                log.warning("launcher.zygote_gone", f"the process that forks executors is started again: {error}")
                self.reset()
            else:
                return
        zygote, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its_end:
            self._zygote = zygote
            _start(self._argv, its_end)
        _send(zygote, theirs)


def _send(zygote: socket.socket, end: socket.socket) -> None:
    socket.send_fds(zygote, [b"f"], [end.fileno()], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _start(argv: list[str], end: socket.socket) -> int:
    """Raises OSError."""
    return os.posix_spawn(
        argv[0],
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, end.fileno(), INHERITED_FD),
        ],
        setsid=True,
    )
