"""Launches from their arrival to their answer. Each is answered exactly once, whatever happens to it."""

import os
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from cronward.launcher import hand_over
from cronward.launcher.executor_handle import Executor
from cronward.launcher.live import LiveRun
from cronward.launcher.pool import Pool
from cronward.launcher.run_directories import Built, RunDirectories
from cronward.protocol import failpoints, log
from cronward.protocol.clock import Clock
from cronward.protocol.launch import Accepted, Launch, Refused, RefuseReason
from cronward.protocol.rundir import Intent

WAIT_MAX_MS = 10_000
"""A launch that has no executor by then is refused."""

REFUSALS_KEPT = 1000
"""Refusals are remembered for a repeated launch, or a scheduler that missed one."""

PROBE_MS = 3000
EXPIRE_MS = 250
IDLE_MS = 1000


class Waiting(msgspec.Struct):
    """A launch in memory. `built` is its directory if an executor died before it could be given the run."""

    launch: Launch
    received_ms: int
    built: Built | None = None


class Launches:
    """`cannot_start` says why no directory can be made at the moment, or is None. `answer` takes each answer."""

    def __init__(
        self, directories: RunDirectories, pool: Pool, clock: Clock, answer: Callable[[Accepted | Refused], None]
    ) -> None:
        self.cannot_start: str | None = None
        self._directories = directories
        self._pool = pool
        self._clock = clock
        self._answer = answer
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._refused: OrderedDict[str, Refused] = OrderedDict()

    def __contains__(self, run: str) -> bool:
        return run in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def receive(self, launch: Launch) -> None:
        """Queues a launch of a run that is not known."""
        self._waiting[launch.run] = Waiting(launch, self._clock.mono_ms())
        failpoints.hit("launcher.after_receive")

    def refusal(self, run: str) -> Refused | None:
        """The refusal of a run, if it was refused lately."""
        return self._refused.get(run)

    def refuse(self, run: str, reason: RefuseReason, detail: str) -> None:
        """Answers; a run that waits leaves the queue, with the directory that it may have."""
        waiting = self._waiting.pop(run, None)
        if waiting is not None and waiting.built is not None:
            self._directories.discard(waiting.built)
        log.warning("launch.refused", f"a launch is refused: {detail}", run=run, reason=str(reason))
        self._refused[run] = refused = Refused(run, reason, detail)
        if len(self._refused) > REFUSALS_KEPT:
            self._refused.popitem(last=False)
        self._answer(refused)

    def start(self) -> None:
        """Hands over as many as there are ready executors, in order of arrival."""
        while self._waiting and (executor := self._pool.take()) is not None:
            self._start(next(iter(self._waiting.values())), executor)

    def expire(self, now_ms: int) -> int:
        """Duty: refuses what waited too long."""
        late = [w for w in self._waiting.values() if now_ms - w.received_ms >= WAIT_MAX_MS]
        for waiting in late:
            detail = self._pool.failure or f"no executor was free within {WAIT_MAX_MS // 1000} s"
            self.refuse(waiting.launch.run, RefuseReason.SPAWN_FAILED, detail)
        return EXPIRE_MS if self._waiting else IDLE_MS

    def probe(self, now_ms: int) -> int:
        """Duty: finds out whether directories can be made again."""
        if self.cannot_start is not None:
            try:
                self._directories.probe()
            except OSError as error:
                self.cannot_start = _reason(error)
            else:
                self.cannot_start = None
                log.info("launcher.can_start", "run directories can be made again")
        return PROBE_MS

    def _start(self, waiting: Waiting, executor: Executor) -> None:
        launch = waiting.launch
        intent = self._intent(launch, executor)
        try:
            if waiting.built is None:
                waiting.built = self._directories.publish(intent)
                failpoints.hit("launcher.after_publish")
            else:
                self._directories.rewrite_intent(waiting.built, intent)
        except (OSError, failpoints.FailpointError) as error:
            self._cannot(launch.run, error)
            return
        if not hand_over.give(executor.end, launch.run, launch.secret, waiting.built):
            log.warning("launch.hand_over_failed", "an executor could not take a run", run=launch.run, pid=executor.pid)
            executor.retire()
            return
        # The run is the executor's now, whatever happens here: it is never given out again.
        del self._waiting[launch.run]
        os.close(waiting.built.lock_fd)
        self._pool.occupy(executor, LiveRun.of(intent, waiting.built.path))
        try:
            failpoints.hit("launcher.after_hand_over")
        finally:
            self._answer(Accepted(launch.run, intent.executor.pid))

    def _cannot(self, run: str, error: Exception) -> None:
        reason = _reason(error)
        if isinstance(error, OSError):
            self.cannot_start = reason
        self.refuse(run, RefuseReason.SPAWN_FAILED, reason)

    def _intent(self, launch: Launch, executor: Executor) -> Intent:
        if executor.identity is None:
            raise RuntimeError(f"executor {executor.pid} is idle without having said who it is")
        limits = launch.limits
        deadline_ms = (
            self._clock.mono_ms() + limits.setup_ms + limits.timeout_ms + limits.grace_ms + limits.cleanup_ms
            if limits.timeout_ms
            else None
        )
        return Intent(
            launch.run,
            launch.kind,
            launch.job,
            limits,
            executor.identity,
            deadline_ms,
            launch.path,
            launch.leave_children,
        )


def _reason(error: Exception) -> str:
    return f"the run directory cannot be made: {error}"
