"""The counters of a job are what its history adds up to."""

import msgspec

from cronward.scheduler.changes import Detail
from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Edit, Job, JobState, Run, Seen, SlotDecision, TurnEnded

NOT_COUNTED = {"interrupted", "launch_lost", "cancelled", "terminated", "abandoned"}
"""The service or a person ended these runs, not the job."""


class Count:
    """Of one job."""

    def __init__(self) -> None:
        self.errors = self.skipped = self.consumed = 0
        self.last_status: str | None = None

    def add(self, run: Run) -> None:
        self.last_status = run.state
        if run.reason in NOT_COUNTED:
            return
        self.errors = self.errors + 1 if run.state == "error" else 0
        self.skipped = self.skipped + 1 if run.state == "skipped" else 0

    def of(self, state: JobState) -> bool:
        said = (state.consecutive_errors, state.consecutive_skipped, state.consumed_slots, state.last_status)
        return said == (self.errors, self.skipped, self.consumed, self.last_status)

    def __repr__(self) -> str:
        return f"{self.errors} errors, {self.skipped} skipped, {self.consumed} consumed, last {self.last_status}"


class Counters:
    """Adds up the ends of runs; compares at the end of each turn."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._counts: dict[int, Count] = {}
        self._states: dict[int, JobState] = {}
        self._touched: set[int] = set()

    def see(self, event: Seen) -> None:
        match event:
            case Changed(None, Job() as job):
                self._positions[job.job_id] = job.position
                self._counts[job.position] = Count()
            case Changed(_, JobState() as state):
                self._states[state.position] = state
                self._touched.add(state.position)
            case Changed(JobState() as state, None):
                self._counts.pop(state.position, None)
            case Changed(before, Run() as run) if not run.is_live:
                self._end(before, run)
            case Changed(_, SlotDecision(decision="consumed") as decision):
                self._count(self._positions.get(decision.job_id)).consumed += 1
            case Changed(_, Edit(job_id=str() as job_id, detail=detail)):
                self._edit(job_id, msgspec.json.decode(detail, type=Detail))
            case TurnEnded():
                self._compare()

    def _end(self, before: object, run: Run) -> None:
        if isinstance(before, Run) and not before.is_live:
            return
        withdrawn = isinstance(before, Run) and before.state == "queued" and run.reason != "cancelled"
        if not withdrawn:
            self._count(run.job_position).add(run)
            self._touched.add(run.job_position)

    def _edit(self, job_id: str, detail: Detail) -> None:
        """Enabling a job again forgets its failures in a row."""
        enabled_again = detail.before and detail.after and detail.after.enabled and not detail.before.enabled
        if enabled_again:
            count = self._count(self._positions.get(job_id))
            count.errors = 0

    def _count(self, position: int | None) -> Count:
        return self._counts.get(-1 if position is None else position, Count())

    def _compare(self) -> None:
        for position in self._touched:
            if position in self._counts and not self._counts[position].of(self._states[position]):
                raise Broken(f"job {position} has {self._states[position]}, its history: {self._counts[position]}")
        self._touched.clear()
