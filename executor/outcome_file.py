"""The outcome in the run directory: complete under its name, or not there."""

import os

from cronward.protocol.rundir import OUTCOME, OUTCOME_NEW, seal


class OutcomeFile:
    """One encoded outcome on its way to the disk, in two steps since the second one waits for it."""

    def __init__(self, directory: str, outcome: bytes) -> None:
        self.outcome = outcome
        self.saved = False
        self._synced = False
        self._directory = directory
        self._path = f"{directory}/{OUTCOME}"

    def save(self) -> None:
        """Writes and renames, so that a crash of this process loses nothing. Raises OSError; may be called again."""
        new = f"{self._directory}/{OUTCOME_NEW}"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            rest = memoryview(seal(self.outcome))
            while rest:
                rest = rest[os.write(fd, rest) :]
        finally:
            os.close(fd)
        os.rename(new, self._path)
        self.saved = True

    def sync(self) -> None:
        """Makes it survive a power loss: fsync of the file, then of its directory; once. Raises OSError."""
        if self._synced:
            return
        for path in (self._path, self._directory):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        self._synced = True
