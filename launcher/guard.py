"""The backstop at work: looks at runs beyond their deadlines and does what `backstop` decides."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

from cronward.launcher.backstop import Action, decide, must_look
from cronward.launcher.judgement import is_over, read_outcome
from cronward.launcher.live import LiveRun
from cronward.launcher.pidfds import open_pidfd
from cronward.launcher.pool import Pool
from cronward.launcher.watch import Watch
from cronward.protocol import log
from cronward.protocol.launch import Exited, Gone
from cronward.protocol.rundir import Damaged

STEP_MS = 1000


class Guard:
    """`report` takes Exited of runs whose outcome is saved although their lock is held."""

    def __init__(self, pool: Pool, watch: Watch, report: Callable[[Exited], None]) -> None:
        self._pool = pool
        self._watch = watch
        self._report = report

    def step(self, now_ms: int) -> int:
        """Duty."""
        own = [executor.live for executor in self._pool.busy() if executor.live is not None]
        self._look(own, own=True, now_ms=now_ms)
        self._look(self._watch.lives(), own=False, now_ms=now_ms)
        return STEP_MS

    def _look(self, lives: Iterable[LiveRun], *, own: bool, now_ms: int) -> None:
        for live in lives:
            if must_look(live, now_ms):
                over = is_over(live.directory)
                saved = _saved_outcome(live) if over else None
                action = decide(live, over=over, saved=saved is not None, own=own, now_ms=now_ms)
                self._act(action, live, saved, now_ms)

    def _act(self, action: Action, live: LiveRun, saved: bytes | None, now_ms: int) -> None:
        match action:
            case Action.WAIT:
                pass
            case Action.SET_DEADLINE:
                live.deadline_ms = now_ms + live.cleanup_ms
            case Action.TERMINATE:
                live.terminated_ms = now_ms
                log.error("run.overdue", "an executor did not end its run in time; it gets SIGTERM", run=live.run)
                _signal(live, signal.SIGTERM, signal.SIGCONT)
            case Action.KILL | Action.END:
                log.error("run.executor_killed", f"an executor hangs and is killed ({action.value})", run=live.run)
                _signal(live, signal.SIGKILL)
            case Action.REPORT:
                live.reported_ms = now_ms
                log.error("run.reported_from_disk", "an executor saved its outcome and hangs", run=live.run)
                self._report(Exited(live.run, Gone.REPORTED, saved))


def _saved_outcome(live: LiveRun) -> bytes | None:
    try:
        return read_outcome(live.directory, live.run)
    except (OSError, Damaged):
        return None


def _signal(live: LiveRun, *signals: signal.Signals) -> None:
    pidfd = open_pidfd(live.executor)
    if pidfd is not None:
        try:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                for number in signals:
                    signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)
