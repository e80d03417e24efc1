"""Deleting run directories: renamed at once, removed little by little."""

import os
from collections import deque
from collections.abc import Callable, Iterator

from cronward.launcher.judgement import open_lock, try_lock
from cronward.launcher.run_directories import RunDirectories
from cronward.protocol import log
from cronward.protocol.ids import run_key
from cronward.protocol.rundir import FORGET_PREFIX

ENTRIES_PER_STEP = 50
STEP_MS = 20
IDLE_MS = 1000


class Forgetting:
    """`is_known` says of a run id whether this launcher still has to do with it: such a run is not forgotten."""

    def __init__(self, directories: RunDirectories, is_known: Callable[[str], bool]) -> None:
        self._directories = directories
        self._is_known = is_known
        self._doomed: deque[str] = deque()
        self._queued: set[str] = set()
        self._removing: Iterator[None] | None = None

    def forget(self, runs: list[str]) -> list[str]:
        """Those of `runs` that have no directory any more. The others are live or cannot be renamed now."""
        return [run for run in runs if not self._is_known(run) and self._vanish(run)]

    def doom(self, path: str) -> None:
        """Deletes a directory that belongs to no run."""
        if path not in self._queued:
            self._queued.add(path)
            self._doomed.append(path)

    def delete_some(self, now_ms: int) -> int:
        """Duty: removes a bounded number of files."""
        for _ in range(ENTRIES_PER_STEP):
            if self._removing is None:
                if not self._doomed:
                    return IDLE_MS
                self._removing = self._remove(self._doomed.popleft())
            if next(self._removing, _END) is _END:
                self._removing = None
        return STEP_MS

    def _vanish(self, run: str) -> bool:
        path = self._directories.path(run)
        doomed = f"{self._directories.root}/{FORGET_PREFIX}{run_key(run)}"
        try:
            lock_fd = open_lock(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            log.warning("run.not_forgotten", f"a run directory cannot be deleted now: {error}", run=run)
            return False
        try:
            if not try_lock(lock_fd):
                return False
            os.rename(path, doomed)
        except OSError as error:
            log.warning("run.not_forgotten", f"a run directory cannot be deleted now: {error}", run=run)
            return False
        finally:
            os.close(lock_fd)
        self.doom(doomed)
        return True

    def _remove(self, path: str) -> Iterator[None]:
        """Yields after each entry. What cannot be removed is logged, and found again by the walk."""
        try:
            for directory, folders, files in os.walk(path, topdown=False):
                for name in files:
                    os.unlink(f"{directory}/{name}")
                    yield
                for name in folders:
                    _remove_folder(f"{directory}/{name}")
                    yield
            os.rmdir(path)
        except OSError as error:
            log.warning("launcher.not_deleted", f"a leftover cannot be deleted now: {error}")
        finally:
            self._queued.discard(path)


_END = object()


def _remove_folder(path: str) -> None:
    """os.walk lists links to directories among directories."""
    if os.path.islink(path):
        os.unlink(path)
    else:
        os.rmdir(path)
