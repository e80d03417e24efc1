"""What became of a run: its lock says whether anybody has it, its directory what was saved."""

import contextlib
import errno
import fcntl
import os

import msgspec

from cronward.protocol import outcome, rundir
from cronward.protocol.ids import run_key
from cronward.protocol.run import MESSAGE_MAX_BYTES
from cronward.protocol.rundir import Damaged, Intent


class Held(msgspec.Struct, frozen=True):
    """Somebody has the run."""


class Absent(msgspec.Struct, frozen=True):
    """There is no directory."""


class Free(msgspec.Struct, frozen=True):
    """Nobody has the run and nobody ever can. The caller owns `lock_fd`, which holds the lock now; None if the
    directory was removed under a run that was followed.

    `outcome` is what was saved (as encoded by `outcome.encode`); None with the reason in `problem`. `intent` is None
    if it is damaged.
    """

    lock_fd: int | None
    outcome: bytes | None
    problem: str
    intent: Intent | None


Verdict = Held | Absent | Free


def judge(directory: str, run: str) -> Verdict:
    """Tries the lock of `directory`. Raises OSError if it cannot be told (too many open files, I/O error)."""
    try:
        lock_fd = open_lock(directory)
    except (FileNotFoundError, NotADirectoryError):
        return Absent()
    if not try_lock(lock_fd):
        os.close(lock_fd)
        return Held()
    try:
        intent = _intent_or_none(directory)
        try:
            return Free(lock_fd, read_outcome(directory, run), "", intent)
        except Damaged as damage:
            return Free(lock_fd, None, str(damage), intent)
    except OSError:
        os.close(lock_fd)
        raise


def open_lock(directory: str) -> int:
    """A lock file that is missing is made: without one nobody can hold it. What is no file does not block. Raises
    FileNotFoundError if the directory is missing."""
    return os.open(f"{directory}/{rundir.LOCK}", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)


def try_lock(lock_fd: int) -> bool:
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_over(directory: str) -> bool:
    """Whether the executor wrote into the lock that its task is over. False if that cannot be read."""
    with contextlib.suppress(OSError, Damaged):
        return _read(f"{directory}/{rundir.LOCK}", 1) == rundir.TASK_OVER
    return False


def read_intent(directory: str) -> Intent:
    """Raises Damaged (missing, cut, foreign, of another run than the directory's), OSError."""
    try:
        intent = rundir.decode_intent(_read(f"{directory}/{rundir.INTENT}", rundir.SEALED_MAX_BYTES + 1))
    except FileNotFoundError:
        raise Damaged(f"{rundir.INTENT} is missing") from None
    if run_key(intent.run) != os.path.basename(directory):
        raise Damaged(f"{rundir.INTENT} is of another run")
    return intent


def read_outcome(directory: str, run: str) -> bytes:
    """The encoded outcome. Raises Damaged (missing, cut, foreign, of another run), OSError."""
    try:
        body = rundir.unseal(_read(f"{directory}/{rundir.OUTCOME}", MESSAGE_MAX_BYTES), rundir.OUTCOME)
        saved = outcome.decode(body)
    except FileNotFoundError:
        raise Damaged("no outcome was saved") from None
    except msgspec.DecodeError as error:
        raise Damaged(f"{rundir.OUTCOME} cannot be decoded: {error}") from error
    if saved.run != run:
        raise Damaged(f"{rundir.OUTCOME} is of another run")
    return body


def _intent_or_none(directory: str) -> Intent | None:
    try:
        return read_intent(directory)
    except Damaged:
        return None


def _read(path: str, max_bytes: int) -> bytes:
    """Raises FileNotFoundError, Damaged for what will never be readable, OSError for what may be later."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Damaged(f"{os.path.basename(path)} is a symbolic link") from None
        raise
    try:
        chunks = []
        while max_bytes > 0 and (chunk := os.read(fd, max_bytes)):
            chunks.append(chunk)
            max_bytes -= len(chunk)
        return b"".join(chunks)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EIO):
            raise Damaged(f"{os.path.basename(path)} cannot be read: {error.strerror}") from error
        raise
    finally:
        os.close(fd)
