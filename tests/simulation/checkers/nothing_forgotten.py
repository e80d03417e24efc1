"""Nothing due is forgotten: every slot of an enabled job is requested, consumed, or covered by a documented rule.

The rules: slots that were missed together are one (what lies between a deadline and now); after a failure nothing
runs before the backoff is over; a run's end is followed by a gap of two seconds.
"""

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

BACKOFF_MAX_MS = 3_600_000
REFIRE_GAP_MS = 2_000


class Known(msgspec.Struct):
    """What is known of a job. `ended_ms` is when its last run ended, `failed` how."""

    job_id: str
    definition: jobs.Definition
    deadline_ms: int | None = None
    flag: str | None = None
    ended_ms: int = -(2**60)
    failed: bool = False

    def next_slot_ms(self, after_ms: int) -> int | None:
        return next_slot_ms(self.definition.schedule, job_id=self.job_id, after_ms=after_ms)


class NothingForgotten:
    """Follows every job's deadline along its natural slots."""

    def __init__(self) -> None:
        self._jobs: dict[int, Known] = {}
        self._positions: dict[str, int] = {}
        self._handled: set[tuple[str, int]] = set()
        """Slots that have a run or a decision."""
        self._moves: list[tuple[int, int | None, int | None]] = []
        self._edited: set[str] = set()
        self._wall_ms = 0

    def see(self, event: Seen) -> None:
        match event:
            case TurnBegan(wall_ms=wall_ms):
                self._wall_ms = wall_ms
            case Changed(_, Job() as job):
                self._define(job)
            case Changed(_, JobState() as state):
                self._move(state)
            case Changed(JobState() as state, None):
                self._jobs.pop(state.position, None)
            case Changed(before, Run() as run):
                self._run(before, run)
            case Changed(_, SlotDecision() as decision):
                self._handled.add((decision.job_id, decision.until_ms))
                self._handled.add((decision.job_id, decision.slot_ms))
            case Changed(_, Edit(job_id=str() as job_id)):
                self._edited.add(job_id)
            case TurnEnded(deciding=deciding, more=more):
                self._judge(idle=deciding and not more)
            case Quiet(wall_ms=wall_ms):
                self._judge_end(wall_ms)

    def _define(self, job: Job) -> None:
        definition = jobs.decode(job.definition)
        self._positions[job.job_id] = job.position
        known = self._jobs.setdefault(job.position, Known(job.job_id, definition))
        known.definition = definition

    def _move(self, state: JobState) -> None:
        known = self._jobs.get(state.position)
        if known is not None:
            if known.deadline_ms != state.next_due_ms:
                self._moves.append((state.position, known.deadline_ms, state.next_due_ms))
            known.deadline_ms, known.flag = state.next_due_ms, state.flag

    def _run(self, before: object, run: Run) -> None:
        if before is None:
            self._handled.add((run.job_id, run.slot_ms))
        known = self._jobs.get(run.job_position)
        if known is not None and not run.is_live:
            known.ended_ms, known.failed = self._wall_ms, run.state == "error"

    def _judge(self, *, idle: bool) -> None:
        edited = {self._positions[job] for job in self._edited if job in self._positions}
        for position, before_ms, after_ms in self._moves:
            if position in self._jobs and position not in edited and before_ms is not None:
                self._judge_move(self._jobs[position], before_ms, after_ms)
        for known in (self._jobs[position] for position in edited if position in self._jobs):
            self._judge_deadline(known)
        if idle:
            self._judge_overdue()
        self._moves.clear()
        self._edited.clear()

    def _judge_move(self, known: Known, before_ms: int, after_ms: int | None) -> None:
        """Every slot from the old deadline to the new one is handled or covered."""
        if before_ms <= self._wall_ms and (known.job_id, before_ms) not in self._handled:
            raise Broken(f"the slot {before_ms} of job {known.job_id} was passed over")
        if not known.definition.enabled or known.flag is not None:
            return
        if after_ms is None:
            if known.next_slot_ms(max(before_ms, self._wall_ms)) is not None:
                raise Broken(f"job {known.job_id} has no deadline any more")
            return
        slot_ms = known.next_slot_ms(max(before_ms, self._wall_ms))
        while slot_ms is not None and slot_ms < after_ms:
            if not self._is_covered(known, slot_ms):
                raise Broken(f"the slot {slot_ms} of job {known.job_id} is left out: {before_ms} → {after_ms}")
            slot_ms = known.next_slot_ms(slot_ms)

    def _is_covered(self, known: Known, slot_ms: int) -> bool:
        until_ms = known.ended_ms + (BACKOFF_MAX_MS if known.failed else REFIRE_GAP_MS)
        return slot_ms <= until_ms

    def _judge_deadline(self, known: Known) -> None:
        """What is enabled and can come again has a deadline."""
        repeats = not isinstance(known.definition.schedule, jobs.At)
        if known.definition.enabled and repeats and known.flag is None and known.deadline_ms is None:
            raise Broken(f"job {known.job_id} is enabled and has no deadline")

    def _judge_overdue(self) -> None:
        for known in self._jobs.values():
            if known.deadline_ms is not None and known.deadline_ms <= self._wall_ms:
                raise Broken(f"job {known.job_id} was due at {known.deadline_ms} and nothing happened")

    def _judge_end(self, wall_ms: int) -> None:
        for known in self._jobs.values():
            self._judge_deadline(known)
            if known.deadline_ms is not None and known.deadline_ms <= wall_ms:
                raise Broken(f"job {known.job_id} was due at {known.deadline_ms} and nothing happened")
