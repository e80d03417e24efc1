"""The executors of this launcher: some ready, more when launches wait, fewer when nobody needed them for a while."""

import os
from collections.abc import Callable, Collection

from cronward.launcher.executor_handle import Executor, State
from cronward.launcher.live import LiveRun
from cronward.launcher.readiness import Readiness
from cronward.launcher.spawner import Spawner
from cronward.protocol import log
from cronward.protocol.clock import Clock
from cronward.protocol.launch import PoolState
from cronward.protocol.pair import Free

SPAWNS_PER_TURN = 16
"""Starting one takes about a millisecond of the loop."""

START_MAX_MS = 30_000
"""An executor that is not ready by then never will be."""

RETIRE_MAX_MS = 10_000
"""An idle executor that does not end with its pair is killed; it has nothing to lose."""

SILENCE_MAX_MS = 1000
"""An executor whose pair broke under a run is normally dead; after this long its run is followed by the lock."""

BACKOFF_MS = (500, 1000, 2000, 5000)
"""Pauses after starts that failed one after another."""

SURPLUS_WINDOW_MS = 30_000
"""Executors beyond the target that stayed idle throughout such a window are retired at its end."""


class Pool:
    """`on_free` is told of runs whose lock an executor closed, `on_lost` of runs whose executor cannot be heard any
    more, with what is known of its end. `failure` says why the last executor could not be started; None once one could.
    """

    def __init__(
        self,
        spawner: Spawner,
        readiness: Readiness,
        clock: Clock,
        on_free: Callable[[LiveRun, Free], None],
        on_lost: Callable[[LiveRun, str], None],
    ) -> None:
        self.failure: str | None = None
        self._spawner = spawner
        self._readiness = readiness
        self._clock = clock
        self._tell_free = on_free
        self._tell_lost = on_lost
        self._executors: dict[int, Executor] = {}  # by pid, once it is known
        self._starting: set[Executor] = set()
        self._idle: list[Executor] = []  # the one used last is taken first: its memory is warm
        self._busy: dict[str, Executor] = {}
        self._target = 0
        self._max = 0
        self._failures = 0
        self._not_before_ms = 0
        self._window_ends_ms = 0
        self._window_idle_min = 0

    def configure(self, ready: int, executors_max: int) -> None:
        self._target, self._max = min(ready, executors_max), executors_max

    def grow(self, waiting: int) -> None:
        """Starts what is missing for `waiting` launches and the ready target, within the maximum."""
        missing = self._target + waiting - len(self._idle) - len(self._starting)
        if missing <= 0:
            return
        room = self._max - len(self._idle) - len(self._starting) - len(self._busy)
        now_ms = self._clock.mono_ms()
        for _ in range(min(missing, room, SPAWNS_PER_TURN)):
            if now_ms < self._not_before_ms:
                return
            self._spawn(now_ms)

    def take(self) -> Executor | None:
        """The executor to be used next; it stays idle until `occupy` or `retire`."""
        return self._idle[-1] if self._idle else None

    def occupy(self, executor: Executor, live: LiveRun) -> None:
        """`executor` was given `live`."""
        self._idle.remove(executor)
        self._window_idle_min = min(self._window_idle_min, len(self._idle))
        executor.live, executor.state = live, State.BUSY
        self._busy[live.run] = executor

    def holder(self, run: str) -> Executor | None:
        """The executor that was given `run` and has not said that it is free."""
        return self._busy.get(run)

    def busy(self) -> Collection[Executor]:
        return self._busy.values()

    def is_dead(self) -> bool:
        """Whether there is no executor that could ever take a launch."""
        return not (self._idle or self._busy or self._starting)

    def state(self, adopted: int, waiting: int) -> PoolState:
        return PoolState(len(self._idle), len(self._busy), len(self._starting), adopted, waiting)

    def reap(self, pid: int, status: int) -> None:
        """The kernel says that child `pid` ended; children that are no executors are none of ours."""
        executor = self._executors.pop(pid, None)
        if executor is None:
            return
        executor.receive()  # what it said before it died still counts
        executor.close()
        how = f"executor {pid} {_describe(status)}"
        if executor.identity is None:
            self._failed(f"{how} before it was ready")
        elif executor.live is not None or status != 0:
            log.warning("executor.died", how, pid=pid, run=executor.live.run if executor.live else None)
        self._lose(executor, how)

    def tend(self, now_ms: int) -> int:
        """Duty: ends executors that hang while starting or retiring, and those that nobody needs."""
        for executor in [e for e in self._starting if now_ms - e.since_ms >= START_MAX_MS]:
            executor.kill()
            executor.retire()
        for executor in [e for e in self._executors.values() if e.state is State.RETIRING]:
            age_ms = now_ms - executor.since_ms
            if executor.live is not None and age_ms >= SILENCE_MAX_MS:
                self._lose(executor, f"executor {executor.pid} closed its pair")
            elif executor.live is None and not executor.keeps_run and age_ms >= RETIRE_MAX_MS:
                executor.kill()
        if now_ms >= self._window_ends_ms:
            for executor in self._idle[: max(0, self._window_idle_min - self._target)]:
                executor.retire()
            self._window_idle_min, self._window_ends_ms = len(self._idle), now_ms + SURPLUS_WINDOW_MS
        return 1000

    # what executors tell

    def on_ready(self, executor: Executor) -> None:
        if executor.identity is not None and executor in self._starting:
            self._starting.remove(executor)
            self._executors[executor.identity.pid] = executor
            self._failures, self.failure = 0, None
        self._idle.append(executor)

    def on_free(self, executor: Executor, live: LiveRun, free: Free) -> None:
        del self._busy[live.run]
        self._tell_free(live, free)

    def on_retire(self, executor: Executor) -> None:
        self._readiness.forget(executor.end.fileno())
        executor.since_ms = self._clock.mono_ms()
        if executor in self._idle:
            self._idle.remove(executor)
        if executor in self._starting:
            self._starting.remove(executor)
            if executor.pid is None:  # nobody will reap it here by name
                self._failed("an executor ended before it was ready")

    # details

    def _lose(self, executor: Executor, how: str) -> None:
        """From now on the run of `executor` is followed by its lock."""
        live, executor.live = executor.live, None
        if live is not None:
            executor.keeps_run = True
            del self._busy[live.run]
            self._tell_lost(live, how)

    def _spawn(self, now_ms: int) -> None:
        try:
            spawned = self._spawner.spawn()
        except OSError as error:
            self._failed(f"an executor cannot be started: {error}")
            return
        executor = Executor(self, spawned.pid, spawned.end, now_ms)
        if spawned.pid is not None:
            self._executors[spawned.pid] = executor
        self._starting.add(executor)
        self._readiness.watch(spawned.end.fileno(), executor.receive)

    def _failed(self, failure: str) -> None:
        pause_ms = BACKOFF_MS[min(self._failures, len(BACKOFF_MS) - 1)]
        self._failures += 1
        self._not_before_ms = self._clock.mono_ms() + pause_ms
        self.failure = failure
        self._spawner.reset()
        log.error("executor.start_failed", failure, retry_ms=pause_ms)


def _describe(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
