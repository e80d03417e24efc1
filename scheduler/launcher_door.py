"""Who may speak on the `launch` socket: the process that holds this state directory's launcher lock, nobody else.

To a launcher of another state directory every live run would be absent, and whoever can open the socket could repeat
what a launcher said. The kernel's word (unix(7), SO_PEERCRED) tells the one from the other.
"""

from pathlib import Path

from cronward.protocol import locks, log

STRANGERS_MAX = 100


class LauncherDoor:
    """Knows who was let in last, who before that, and which strangers it has told of."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._admitted_pid: int | None = None
        self._former_pid: int | None = None
        self._strangers: set[int] = set()

    def admits(self, pid: int | None) -> bool:
        """Whether a message of process `pid` is taken. Where the sender or the lock's holder cannot be told (no
        credentials, an unreadable file), nobody is turned away."""
        if not pid or pid == self._admitted_pid:
            return True
        holder = locks.last_holder(self._lock)
        if holder is None:
            return True
        if holder.pid == pid:
            self._former_pid, self._admitted_pid = self._admitted_pid, pid
            return True
        if pid != self._former_pid and pid not in self._strangers and len(self._strangers) < STRANGERS_MAX:
            self._strangers.add(pid)
            log.error(
                "launcher.stranger",
                "a process that does not hold the launcher lock speaks as the launcher; it gets no answer",
                launcher_pid=pid,
                lock=str(self._lock),
            )
        return False
