"""A launch is never repeated, whatever crashes; and nothing is launched that is not active in the ledger."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Launched, Run, Seen


class LaunchOnce:
    def __init__(self) -> None:
        self._launched: set[str] = set()
        self._states: dict[str, str] = {}

    def see(self, event: Seen) -> None:
        match event:
            case Changed(_, Run() as run):
                self._states[run.run_id] = run.state
            case Launched(run_id=run_id):
                if run_id in self._launched:
                    raise Broken(f"run {run_id} was launched twice")
                if run_id not in self._states:
                    raise Broken(f"run {run_id} was launched and is not in the ledger")
                self._launched.add(run_id)
