"""Starting executor processes."""

import os
import socket
import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec

PAIR_FD = 3
"""Number of the pair's descriptor in the executor."""

EXECUTOR = (sys.executable, "-P", "-m", "cronward.executor")
"""The command; `PAIR_FD RUN_SOCKET_PATH` follow. -P: nothing is imported from the working directory."""


class Spawned(msgspec.Struct):
    """A child process that will say Ready on the other end of `end`."""

    pid: int
    end: socket.socket


class Spawner(Protocol):
    def spawn(self) -> Spawned:
        """Starts one executor without waiting for it. Raises OSError."""
        ...


class ExecSpawner:
    """A process of its own for each, in a session of its own, with nothing inherited but its end of the pair."""

    def __init__(self, command: Sequence[str], run_socket: str) -> None:
        self._argv = [*command, str(PAIR_FD), run_socket]

    def spawn(self) -> Spawned:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                pid = os.posix_spawn(
                    self._argv[0],
                    self._argv,
                    os.environ,
                    file_actions=[
                        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                        (os.POSIX_SPAWN_DUP2, theirs.fileno(), PAIR_FD),
                    ],
                    setsid=True,
                )
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return Spawned(pid, ours)
