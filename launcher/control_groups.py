"""Control groups that executors left: ending what is in them at once, and removing them when they are empty."""

import contextlib
import errno
import os
from pathlib import Path

from cronward.protocol import log
from cronward.protocol.cgroup import EXECUTOR_PREFIX, executor_cgroup
from cronward.protocol.identity import ProcessIdentity, start_ticks

_REMOVED = frozenset({errno.ENOENT, errno.ENODEV})
"""What there is to say of a group that was removed before, or between opening its file and writing to it."""


class ControlGroups:
    """Groups of executors below `parent`, the launcher's own cgroup2 directory; None where there is none: then nothing
    is ever found."""

    def __init__(self, parent: Path | None) -> None:
        self._parent = parent

    def kill(self, executor: ProcessIdentity) -> None:
        """SIGKILL to everything in the group of a dead executor, however deep. If that fails, whoever asks for what is
        left still finds it."""
        if self._parent is None:
            return
        try:
            (executor_cgroup(executor, self._parent) / "cgroup.kill").write_text("1")
        except OSError as error:
            if error.errno not in _REMOVED:
                log.warning("launcher.cgroup_kill_failed", f"the group of executor {executor.pid}: {error}")

    def pids(self, executor: ProcessIdentity) -> set[int]:
        """What is in the group, however deep."""
        if self._parent is None:
            return set()
        found: set[int] = set()
        for directory, _, _ in os.walk(
            executor_cgroup(executor, self._parent)
        ):  # passes over what is removed meanwhile
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in Path(directory, "cgroup.procs").read_text().split())
        return found

    def remove_empty(self) -> None:
        """Removes the groups of dead executors that hold no process; what jobs made inside keeps a group."""
        if self._parent is None:
            return
        for group in self._parent.glob(f"{EXECUTOR_PREFIX}*-*"):
            pid, _, ticks = group.name.removeprefix(EXECUTOR_PREFIX).partition("-")
            if pid.isdigit() and ticks.isdigit() and start_ticks(int(pid)) != int(ticks):
                with contextlib.suppress(OSError):  # not empty yet
                    group.rmdir()
