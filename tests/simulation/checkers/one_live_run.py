"""A job has at most one queued or active run."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Run, Seen


class OneLiveRun:
    def __init__(self) -> None:
        self._live: dict[str, str] = {}

    def see(self, event: Seen) -> None:
        match event:
            case Changed(None | Run(), Run() as run) if run.is_live:
                other = self._live.setdefault(run.job_id, run.run_id)
                if other != run.run_id:
                    raise Broken(f"job {run.job_id} has two live runs: {other} and {run.run_id}")
            case Changed(Run() as run, _) if self._live.get(run.job_id) == run.run_id:
                del self._live[run.job_id]
