"""Giving a run and its lock to an executor: one packet, at most once."""

import socket

from cronward.launcher.run_directories import Built
from cronward.protocol import pair


def give(end: socket.socket, run: str, secret: str, built: Built) -> bool:
    """True once the run is the executor's, or in its socket. False if the kernel took nothing: the executor never had
    it, so it may be given to another."""
    packet = pair.encode(pair.HandOver(run, built.path, secret))
    try:
        socket.send_fds(end, [packet], [built.lock_fd], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        return False
    return True
