"""Every process that descends from this executor. It holds one run at a time, so all of them belong to that run.

The executor is a subreaper: whatever loses its parent, in whatever session or group, becomes its child. Nothing can
leave the tree, so walking it finds everything. The leader of the task is reaped last: until then its pid, which is
also the id of its group and session, cannot be given to a stranger.
"""

import ctypes
import os
import resource
import signal
from collections.abc import Iterable

import msgspec

from cronward.executor import small_file

_PR_SET_CHILD_SUBREAPER = 36

_ENDED = frozenset({os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED})
"""What waitid(2) says of a process that ended. Of a child that asked to be traced it also tells each stop."""


class Exit(msgspec.Struct, frozen=True):
    """How a process ended: exactly one of the two is set."""

    code: int | None
    signal: int | None


def become_subreaper() -> None:
    """Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


class ProcessTree:
    """The processes of one run below this executor, and what they used once they are reaped."""

    def __init__(self, leader: int) -> None:
        self._self = os.getpid()
        self._leader: int | None = leader
        self._cpu_s = 0.0
        self.max_rss_kib = 0

    @property
    def cpu_ms(self) -> int:
        """User and system time of what was reaped."""
        return round(self._cpu_s * 1000)

    def leader_exit(self) -> Exit | None:
        """How the leader ended, without reaping it; None while it lives."""
        if self._leader is None:
            return None
        result = os.waitid(os.P_PID, self._leader, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if result is None or result.si_code not in _ENDED:
            return None
        if result.si_code == os.CLD_EXITED:
            return Exit(result.si_status, None)
        return Exit(None, result.si_status)

    def reap_orphans(self) -> None:
        """Reaps the dead among the adopted; the leader stays."""
        for pid in self._own_children():
            if pid != self._leader:
                self._reap(pid)

    def settle(self) -> bool:
        """Reaps what is dead, the leader only after all others. True when nothing descends from here any more."""
        while others := [pid for pid in self._own_children() if pid != self._leader]:
            # What was below a reaped process has become a child by now, so look again.
            if not any([self._reap(pid) for pid in others]):
                return False
        if self._leader is not None:
            if not self._reap(self._leader):
                return False
            self._leader = None
        # The kernel's own answer: /proc may skip a child while its list changes.
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def leave(self) -> int:
        """Gives up what still lives, reaps the leader, which has ended, and returns how many live on."""
        left = len(self.living())
        if self._leader is not None and self._reap(self._leader):
            self._leader = None
        return left

    def living(self) -> list[int]:
        """Every living descendant, parents before children."""
        return [pid for pid in self._descendants() if _state_and_parent(pid)[0] not in ("", "Z", "X")]

    def send(self, *signals: signal.Signals) -> None:
        """Sends the signals to every descendant, each through its own pidfd."""
        family = self._descendants()
        known = {self._self, *family}
        for pid in family:
            _send_to(pid, known, signals)

    def _descendants(self) -> list[int]:
        found = self._own_children()
        for pid in found:
            # Grows while it is walked.
            found += _children(pid)
        return found

    def _own_children(self) -> list[int]:
        # Orphans are given to the main thread, and no other thread of an executor starts processes.
        return _read_children(self._self, self._self)

    def _reap(self, pid: int) -> bool:
        try:
            reaped, status, usage = os.wait4(pid, os.WNOHANG)
        except ChildProcessError:
            return True
        if reaped == 0 or os.WIFSTOPPED(status):
            return False
        self._cpu_s += usage.ru_utime + usage.ru_stime
        # A child that was started without copying us counts our own size as its peak: then its own is not known.
        if usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
            self.max_rss_kib = max(self.max_rss_kib, usage.ru_maxrss)
        return True


def _send_to(pid: int, known: set[int], signals: Iterable[signal.Signals]) -> None:
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # Compared after opening: a pid that was given to a stranger meanwhile has a parent outside the tree.
        if _state_and_parent(pid)[1] in known:
            for number in signals:
                signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        # Gone already, or of a user whom we may not signal: that one will be found living afterwards.
        pass
    finally:
        os.close(fd)


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [child for thread in threads for child in _read_children(pid, int(thread))]


def _read_children(pid: int, thread: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
            return [int(child) for child in file.readall().split()]
    except OSError:
        return []


def _state_and_parent(pid: int) -> tuple[str, int]:
    """State letter and parent of `pid` (proc_pid_stat(5)); ("", 0) when there is no such process."""
    try:
        stat = small_file.read(f"/proc/{pid}/stat", 4096)
    except OSError:
        return "", 0
    fields = stat[stat.rindex(b")") + 2 :].split(None, 2)
    return fields[0].decode(), int(fields[1])
