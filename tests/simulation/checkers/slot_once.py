"""A slot fires at most once, ever: over restarts, steps of the clock and forgotten history."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Run, Seen


class SlotOnce:
    """Remembers every slot that got a run."""

    def __init__(self) -> None:
        self._fired: set[tuple[str, int]] = set()

    def see(self, event: Seen) -> None:
        match event:
            case Changed(None, Run(kind="scheduled") as run):
                slot = (run.job_id, run.slot_ms)
                if slot in self._fired:
                    raise Broken(f"the slot {run.slot_ms} of job {run.job_id} fired twice")
                self._fired.add(slot)
