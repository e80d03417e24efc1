"""Requests start by due time, then by the time they were asked for, then in the order of their jobs."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Run, Seen, TurnEnded

Place = tuple[int, int, int]


class QueueOrder:
    """Only what an earlier turn requested can start."""

    def __init__(self) -> None:
        self._queued: dict[str, Place] = {}
        self._new: dict[str, Place] = {}

    def see(self, event: Seen) -> None:
        match event:
            case Changed(None, Run(state="queued") as run):
                self._new[run.run_id] = (run.slot_ms, run.requested_ms, run.job_position)
            case Changed(Run(state="queued"), Run(state="active") as run):
                self._start(run.run_id)
            case Changed(Run(state="queued") as run, _):
                self._queued.pop(run.run_id, None)
                self._new.pop(run.run_id, None)
            case TurnEnded():
                self._queued |= self._new
                self._new.clear()

    def _start(self, run_id: str) -> None:
        place = self._queued.pop(run_id, None)
        if place is None:
            raise Broken(f"run {run_id} was requested and started by one transaction")
        first = min(self._queued.values(), default=place)
        if first < place:
            raise Broken(f"run {run_id} with {place} started before {first}")
