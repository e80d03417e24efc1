"""Nothing becomes active beyond the capacity that is configured at that moment."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Run, Seen, TurnBegan


class Capacity:
    def __init__(self) -> None:
        self._active: set[str] = set()
        self._capacity = 0

    def see(self, event: Seen) -> None:
        match event:
            case TurnBegan(capacity=capacity):
                self._capacity = capacity
            case Changed(_, Run(state="active") as run):
                if run.run_id not in self._active and len(self._active) >= self._capacity:
                    raise Broken(f"run {run.run_id} is the {len(self._active) + 1}th of {self._capacity}")
                self._active.add(run.run_id)
            case Changed(Run() as run, _):
                self._active.discard(run.run_id)
