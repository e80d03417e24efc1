"""The ledger says what happened: no task starts twice, none starts that is recorded as never started, and `ok` is a
task that ended well."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Quiet, Run, Seen, TaskEnded, TaskStarted

REPORTING_MS = 60_000
"""Within this time everybody has heard of a task's end, once nothing is broken."""


class HonestLedger:
    """Knows from the simulation what the executors did."""

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._ended: dict[str, TaskEnded] = {}
        self._never: set[str] = set()
        self._active: set[str] = set()

    def see(self, event: Seen) -> None:
        match event:
            case TaskStarted(run_id=run_id):
                if run_id in self._started or run_id in self._never:
                    again = "again" if run_id in self._started else "although it is recorded as never started"
                    raise Broken(f"the task of run {run_id} starts {again}")
                self._started.add(run_id)
            case TaskEnded(run_id=run_id):
                self._ended[run_id] = event
            case Changed(_, Run(state="active") as run):
                self._active.add(run.run_id)
            case Changed(Run() as before, Run() as run) if before.is_live and not run.is_live:
                self._active.discard(run.run_id)
                self._judge(run)
            case Quiet(wall_ms=wall_ms):
                self._judge_end(wall_ms)

    def _judge(self, run: Run) -> None:
        ended = self._ended.get(run.run_id)
        if run.state == "ok" and (ended is None or ended.status != "ok"):
            raise Broken(f"run {run.run_id} is ok, its task: {ended}")
        if run.state == "skipped" or run.reason == "launch_lost":
            self._never.add(run.run_id)
            if run.run_id in self._started:
                raise Broken(f"run {run.run_id} is {run.state} ({run.reason}), and its task was started")

    def _judge_end(self, wall_ms: int) -> None:
        """What is active now has a task that goes on."""
        for run_id in sorted(self._active):
            ended = self._ended.get(run_id)
            if run_id not in self._started or (ended and ended.wall_ms < wall_ms - REPORTING_MS):
                raise Broken(f"after a quiet day run {run_id} is still active, its task: {ended}")
