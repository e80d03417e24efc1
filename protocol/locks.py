"""Locks that live exactly as long as their process: flock on a file that says who holds it."""

import fcntl
import os
from pathlib import Path

import msgspec

from cronward.protocol.identity import ProcessIdentity, own_identity

CHECK_MS = 5_000
"""How often a process looks whether the file of its lock is still there."""


class Held(Exception):
    """Another process holds the lock. `holder` is what that process wrote, or None if it cannot be read."""

    def __init__(self, path: Path, holder: ProcessIdentity | None) -> None:
        self.path = path
        self.holder = holder
        who = f"process {holder.pid}" if holder else "another process"
        super().__init__(f"{path} is held by {who}")


def acquire(path: Path) -> int:
    """Takes the lock and writes this process's identity into the file.

    Returns the descriptor: the lock is released when the process ends, however it ends, and never before.
    Raises Held, or OSError if the file cannot be made or written (its contents are not needed for the lock).
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _read_holder(fd)
        os.close(fd)
        raise Held(path, holder) from None
    try:
        written = os.pwrite(fd, msgspec.json.encode(own_identity()), 0)  # in place: a full disk has room for that
        os.ftruncate(fd, written)
    except OSError:
        os.close(fd)
        raise
    return fd


def is_lost(path: Path, fd: int) -> bool:
    """Whether somebody removed or replaced the file of the lock that `fd` holds: whoever comes now does not see it."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return True


def last_holder(path: Path) -> ProcessIdentity | None:
    """Who took the lock last, whether it still holds it or not; None if that cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return _read_holder(fd)
    finally:
        os.close(fd)


def _read_holder(fd: int) -> ProcessIdentity | None:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=ProcessIdentity)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
