"""Nothing due is forgotten: every slot of an enabled job is requested, consumed, or covered by a documented rule.

What is neither requested nor consumed has a decision that covers it (dropped, deferred, backoff), or lies between a
deadline that came and now: such slots are one.
"""

from collections import deque

import msgspec

from cronward.protocol import job as jobs
from cronward.schedule.planner import next_slot_ms
from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import (
    Changed,
    Edit,
    Job,
    JobState,
    Quiet,
    Run,
    Seen,
    SlotDecision,
    TurnBegan,
    TurnEnded,
)

KEPT = 50
"""Decisions remembered for each job."""


class Known(msgspec.Struct):
    """What is known of a job."""

    job_id: str
    definition: jobs.Definition
    state: JobState | None = None

    def next_slot_ms(self, after_ms: int) -> int | None:
        return next_slot_ms(self.definition.schedule, job_id=self.job_id, after_ms=after_ms)

    @property
    def due_ms(self) -> int | None:
        return self.state.next_due_ms if self.state else None

    @property
    def must_have_deadline(self) -> bool:
        """Enabled, to be planned, and able to come again."""
        flagged = self.state is not None and self.state.flag is not None
        return self.definition.enabled and not flagged and not isinstance(self.definition.schedule, jobs.At)


class NothingForgotten:
    """Follows every job's deadline along its natural slots."""

    def __init__(self) -> None:
        self._jobs: dict[int, Known] = {}
        self._due_ms: dict[int, int] = {}
        self._positions: dict[str, int] = {}
        self._requested: set[tuple[str, int]] = set()
        self._decided: dict[str, deque[SlotDecision]] = {}
        self._moves: list[tuple[JobState, JobState]] = []
        self._edited: set[str] = set()
        self._wall_ms = 0

    def see(self, event: Seen) -> None:
        match event:
            case TurnBegan(wall_ms=wall_ms):
                self._wall_ms = wall_ms
            case Changed():
                self._note(event)
            case TurnEnded(deciding=deciding, more=more):
                self._judge()
                if deciding and not more:
                    self._judge_overdue()
            case Quiet():
                self._judge_overdue()
                for known in self._jobs.values():
                    self._judge_deadline(known)

    def _note(self, change: Changed) -> None:
        match change:
            case Changed(_, Job() as job):
                self._define(job)
            case Changed(before, JobState() as state):
                self._jobs[state.position].state = state
                if state.next_due_ms is None:
                    self._due_ms.pop(state.position, None)
                else:
                    self._due_ms[state.position] = state.next_due_ms
                if isinstance(before, JobState):
                    self._moves.append((before, state))
            case Changed(JobState() as state, None):
                self._jobs.pop(state.position, None)
                self._due_ms.pop(state.position, None)
            case Changed(None, Run() as run):
                self._requested.add((run.job_id, run.slot_ms))
            case Changed(_, SlotDecision() as decision):
                self._decided.setdefault(decision.job_id, deque(maxlen=KEPT)).append(decision)
            case Changed(_, Edit(job_id=str() as job_id)):
                self._edited.add(job_id)

    def _define(self, job: Job) -> None:
        definition = jobs.decode(job.definition)
        self._positions[job.job_id] = job.position
        self._jobs.setdefault(job.position, Known(job.job_id, definition)).definition = definition

    def _judge(self) -> None:
        edited = {self._positions[job] for job in self._edited if job in self._positions}
        for before, after in self._moves:
            if before.position in self._jobs and before.position not in edited:
                self._judge_move(self._jobs[before.position], before, after)
        for known in (self._jobs[position] for position in edited if position in self._jobs):
            self._judge_deadline(known)
        self._moves.clear()
        self._edited.clear()

    def _judge_move(self, known: Known, before: JobState, after: JobState) -> None:
        """Every slot from the old deadline to the new one is handled."""
        due_ms = before.next_due_ms
        if due_ms is None or due_ms == after.next_due_ms:
            return
        slot_ms = due_ms if before.due_slot_ms is None else before.due_slot_ms
        waits_on = after.next_due_ms is not None and after.due_slot_ms == slot_ms
        if due_ms <= self._wall_ms and not waits_on and not self._is_handled(known.job_id, slot_ms):
            raise Broken(f"the slot {slot_ms} of job {known.job_id} was passed over")
        if not known.must_have_deadline:
            return
        natural_ms = known.next_slot_ms(max(slot_ms, self._wall_ms))
        if after.next_due_ms is None and natural_ms is not None:
            raise Broken(f"job {known.job_id} has no deadline any more")
        while natural_ms is not None and after.next_due_ms is not None and natural_ms < after.next_due_ms:
            if natural_ms != after.due_slot_ms and not self._is_handled(known.job_id, natural_ms):
                raise Broken(f"the slot {natural_ms} of job {known.job_id} is left out")
            natural_ms = known.next_slot_ms(natural_ms)

    def _is_handled(self, job_id: str, slot_ms: int) -> bool:
        if (job_id, slot_ms) in self._requested:
            return True
        return any(decision.slot_ms <= slot_ms <= decision.until_ms for decision in self._decided.get(job_id, ()))

    def _judge_deadline(self, known: Known) -> None:
        if known.must_have_deadline and known.due_ms is None:
            raise Broken(f"job {known.job_id} is enabled and has no deadline")

    def _judge_overdue(self) -> None:
        for position, due_ms in self._due_ms.items():
            if due_ms <= self._wall_ms:
                raise Broken(f"job {self._jobs[position].job_id} was due at {due_ms} and nothing happened")
