"""Making run directories: complete before they get their name, with a lock that is held from before that moment on."""

import contextlib
import fcntl
import os
import shutil

import msgspec

from cronward.protocol import rundir
from cronward.protocol.ids import run_key
from cronward.protocol.rundir import Intent

PROBE = f"{rundir.NEW_PREFIX}probe"
PROBE_BYTES = 64 * 1024


class Built(msgspec.Struct):
    """A published run directory that nobody was given yet. `lock_fd` holds its lock."""

    path: str
    lock_fd: int


class RunDirectories:
    """The directories below `root`. The caller holds the launcher's lock, so nobody else makes or renames any."""

    def __init__(self, root: str) -> None:
        self.root = root

    def path(self, run: str) -> str:
        return f"{self.root}/{run_key(run)}"

    def publish(self, intent: Intent) -> Built:
        """Makes the directory of a run. Raises OSError and leaves nothing; FileExistsError if the run has one."""
        key = run_key(intent.run)
        new, path = f"{self.root}/{rundir.NEW_PREFIX}{key}", f"{self.root}/{key}"
        try:
            os.mkdir(new, 0o700)
        except FileExistsError:  # half made by a launcher that was killed
            shutil.rmtree(new)
            os.mkdir(new, 0o700)
        lock_fd = -1
        try:
            lock_fd = _write(f"{new}/{rundir.LOCK}", rundir.TASK_MAY_RUN)
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(_write(f"{new}/{rundir.INTENT}", rundir.encode_intent(intent)))
            _rename_to_free_name(new, path)
        except BaseException:
            if lock_fd >= 0:
                os.close(lock_fd)
            shutil.rmtree(new, ignore_errors=True)
            raise
        return Built(path, lock_fd)

    def rewrite_intent(self, built: Built, intent: Intent) -> None:
        """Replaces the intent of a directory that was not handed over: another executor gets it. Raises OSError."""
        new = f"{built.path}/{rundir.INTENT}.new"
        os.close(_write(new, rundir.encode_intent(intent)))
        os.rename(new, f"{built.path}/{rundir.INTENT}")

    def discard(self, built: Built) -> None:
        """Removes a directory that was not handed over. What cannot be removed now is judged like any other later."""
        shutil.rmtree(built.path, ignore_errors=True)
        os.close(built.lock_fd)

    def probe(self) -> None:
        """Raises OSError while no run directory can be made."""
        path = f"{self.root}/{PROBE}"
        try:
            os.makedirs(path, 0o700, exist_ok=True)
            os.close(_write(f"{path}/{rundir.INTENT}", bytes(PROBE_BYTES)))
        finally:
            with contextlib.suppress(OSError):
                shutil.rmtree(path)


def _rename_to_free_name(new: str, path: str) -> None:
    """rename(2) would silently replace an empty directory, which may be what a failing disk left of a run."""
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists")
    os.rename(new, path)


def _write(path: str, data: bytes) -> int:
    """A new or emptied file with `data`; returns its descriptor. Raises OSError, also for a short write."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    except BaseException:
        os.close(fd)
        raise
    return fd
