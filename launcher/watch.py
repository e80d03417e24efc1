"""Held runs that are in nobody's hands here: an earlier launcher's, or those of an executor that fell silent."""

import os
from collections.abc import Callable, Iterator

import msgspec

from cronward.launcher.judgement import Absent, Free, judge
from cronward.launcher.live import LiveRun
from cronward.launcher.pidfds import open_pidfd
from cronward.launcher.readiness import Readiness
from cronward.protocol import log

RETRY_MS = 1000


class Watched(msgspec.Struct):
    """`pidfd` is the holder's, None if it is dead or unknown. `how` is what is known of its end."""

    live: LiveRun
    pidfd: int | None
    how: str


class Watch:
    """Follows runs by their locks: at once when the holder dies, and by trying each second.

    `on_released` gets the run, what is known of its holder's end, and the verdict, whose lock it owns.
    """

    def __init__(self, readiness: Readiness, on_released: Callable[[LiveRun, str, Free], None]) -> None:
        self._readiness = readiness
        self._on_released = on_released
        self._watched: dict[str, Watched] = {}

    def __contains__(self, run: str) -> bool:
        return run in self._watched

    def __len__(self) -> int:
        return len(self._watched)

    def lives(self) -> Iterator[LiveRun]:
        return (watched.live for watched in self._watched.values())

    def get(self, run: str) -> LiveRun | None:
        watched = self._watched.get(run)
        return watched.live if watched else None

    def add(self, live: LiveRun, how: str = "") -> None:
        """Follows `live` until its lock is free, which it may be already."""
        pidfd = open_pidfd(live.executor)
        self._watched[live.run] = Watched(live, pidfd, how)
        if pidfd is not None:
            self._readiness.watch(pidfd, lambda: self._holder_died(live.run))
        self._try(live.run)

    def try_all(self, now_ms: int) -> int:
        """Duty."""
        for run in list(self._watched):
            self._try(run)
        return RETRY_MS

    def _holder_died(self, run: str) -> None:
        watched = self._watched[run]
        self._close_pidfd(watched)
        if watched.live.executor and not watched.how:
            watched.how = f"executor {watched.live.executor.pid} ended, its exit status is unknown"
        self._try(run)

    def _try(self, run: str) -> None:
        watched = self._watched[run]
        try:
            verdict = judge(watched.live.directory, run)
        except OSError as error:
            log.warning("run.unreadable", f"a run cannot be judged now: {error}", run=run)
            return
        if isinstance(verdict, Absent):
            if watched.pidfd is not None:
                return
            verdict = Free(None, None, "its directory was removed by somebody else", None)
        if isinstance(verdict, Free):
            self._close_pidfd(watched)
            del self._watched[run]
            self._on_released(watched.live, watched.how, verdict)

    def _close_pidfd(self, watched: Watched) -> None:
        if watched.pidfd is not None:
            self._readiness.forget(watched.pidfd)
            os.close(watched.pidfd)
            watched.pidfd = None
