"""The end of runs whose lock was found free: what is left of the task is ended, then Exited says what became of it."""

import os
from collections.abc import Callable

import msgspec

from cronward.launcher import process_tree
from cronward.launcher.control_groups import ControlGroups
from cronward.launcher.judgement import Free
from cronward.launcher.ladder import Ladder
from cronward.protocol import log
from cronward.protocol.identity import ProcessIdentity, boot_id, is_alive
from cronward.protocol.launch import Exited, Gone

STEP_MS = 200
IDLE_MS = 500


class Settlement(msgspec.Struct):
    """One run on its way out; the verdict's lock is kept until it is over."""

    run: str
    how: str
    verdict: Free
    executor: ProcessIdentity | None
    ladder: Ladder
    reported: bool


class Settlements:
    """Ends and reports, bounded by the ladder. `report` takes each Exited."""

    def __init__(
        self, control_groups: ControlGroups, report: Callable[[Exited], None], grace_ms: Callable[[], int]
    ) -> None:
        self._control_groups = control_groups
        self._report = report
        self._default_grace_ms = grace_ms
        self._open: dict[str, Settlement] = {}

    def __contains__(self, run: str) -> bool:
        return run in self._open

    def begin(self, run: str, how: str, verdict: Free, *, reported: bool = False) -> None:
        """Takes over the verdict's lock. `how` is what is known of the executor's end, `reported` whether the outcome
        was reported before the lock was free.

        A living executor has ended its task itself and may be at another run: only the tree of a dead one is ended.
        Of another boot nothing is left.
        """
        if verdict.outcome is not None and not reported:
            self._report(Exited(run, Gone.REPORTED, verdict.outcome))
            reported = True
        intent = verdict.intent
        executor = intent.executor if intent else None
        if (intent and intent.leave_children) or (executor and _nothing_left_of(executor)):
            self._finish(run, how, verdict, reported=reported, left=0)
            return
        grace_ms = intent.limits.grace_ms if intent else self._default_grace_ms()
        settlement = Settlement(run, how, verdict, executor, Ladder(grace_ms), reported)
        if executor:
            self._control_groups.kill(executor)
        self._open[run] = settlement

    def step(self, now_ms: int) -> int:
        """Duty: one look at /proc serves all open settlements."""
        if not self._open:
            return IDLE_MS
        processes = process_tree.snapshot()
        for settlement in list(self._open.values()):
            self._step(settlement, processes, now_ms)
        return STEP_MS if self._open else IDLE_MS

    def _step(self, settlement: Settlement, processes: list[process_tree.Process], now_ms: int) -> None:
        executor = settlement.executor
        group = self._control_groups.pids(executor) if executor else set()
        left = process_tree.left_of(settlement.run, executor, group, processes)
        if settlement.ladder.step(left, now_ms):
            del self._open[settlement.run]
            self._finish(
                settlement.run, settlement.how, settlement.verdict, reported=settlement.reported, left=len(left)
            )

    def _finish(self, run: str, how: str, verdict: Free, *, reported: bool, left: int) -> None:
        if verdict.lock_fd is not None:
            os.close(verdict.lock_fd)
        if left:
            log.error("run.left_processes", "processes of a run do not end", run=run, left=left)
        if not reported:
            detail = "; ".join(filter(None, (how, verdict.problem)))
            log.warning("run.interrupted", f"a run ended without an outcome: {detail}", run=run, left=left)
            self._report(Exited(run, Gone.INTERRUPTED, None, detail, left))


def _nothing_left_of(executor: ProcessIdentity) -> bool:
    return executor.boot_id != boot_id() or is_alive(executor)
