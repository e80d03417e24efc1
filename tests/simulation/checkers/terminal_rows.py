"""Terminal rows never change: neither back into a live state nor in what they say."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Run, Seen, Tampered


class TerminalRows:
    def see(self, event: Seen) -> None:
        match event:
            case Tampered(run_id=run_id):
                raise Broken(f"the terminal row of run {run_id} was changed")
            case Changed(Run() as before, Run() as after) if not before.is_live:
                raise Broken(f"run {before.run_id} went from {before.state} to {after.state}")
