"""Deadlines only move forward. A failed run may bring a retry before the next natural slot, but nothing brings a
deadline back to a slot that came already: only an edit computes it anew. Where the clock was set back since, a failed
run's retry is counted from the time that it is now."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Edit, Job, JobState, Run, Seen, TurnEnded


class DeadlinesForward:
    """Judges a turn's changes at its end, when it is known whether there was an edit or the end of a run among them."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._passed_ms: dict[int, int] = {}
        """The last deadline that came, by job."""
        self._moves: list[tuple[int, int, int]] = []
        self._edited: set[str] = set()
        self._settled: set[str] = set()

    def see(self, event: Seen) -> None:
        match event:
            case Changed(None, Job() as job):
                self._positions[job.job_id] = job.position
            case Changed(_, Edit(job_id=str() as job_id)):
                self._edited.add(job_id)
            case Changed(Run(state="active" | "queued"), Run() as run) if not run.is_live:
                self._settled.add(run.job_id)
            case Changed(JobState() as before, JobState() as after):
                moves = before.next_due_ms != after.next_due_ms
                if moves and before.next_due_ms is not None and after.next_due_ms is not None:
                    self._moves.append((after.position, before.next_due_ms, after.next_due_ms))
            case TurnEnded():
                self._judge(event.wall_ms)
                self._moves.clear()
                self._edited.clear()
                self._settled.clear()

    def _judge(self, wall_ms: int) -> None:
        edited = {self._positions[job] for job in self._edited if job in self._positions}
        settled = {self._positions[job] for job in self._settled if job in self._positions}
        for position in edited:
            self._passed_ms.pop(position, None)
        for position, before_ms, after_ms in self._moves:
            if position in edited:
                continue
            if after_ms <= before_ms and (position not in settled or before_ms <= wall_ms):
                raise Broken(f"the deadline of job {position} went back from {before_ms} to {after_ms}")
            if before_ms <= wall_ms:
                self._passed_ms[position] = before_ms
            if position in settled and wall_ms < self._passed_ms.get(position, -1):
                continue
            if after_ms <= self._passed_ms.get(position, -1):
                raise Broken(f"job {position} is due again at {after_ms}; {self._passed_ms[position]} has come")
