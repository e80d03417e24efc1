"""At most 16 launches are without an answer: more cannot be lost with a launcher."""

from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Answered, EpochClosed, Launched, LifeEnded, Seen

UNANSWERED_MAX = 16


class Window:
    def __init__(self) -> None:
        self._unanswered: set[str] = set()

    def see(self, event: Seen) -> None:
        match event:
            case Launched(run_id=run_id):
                self._unanswered.add(run_id)
                if len(self._unanswered) > UNANSWERED_MAX:
                    raise Broken(f"{len(self._unanswered)} launches are unanswered")
            case Answered(run_id=run_id):
                self._unanswered.discard(run_id)
            case EpochClosed() | LifeEnded():
                self._unanswered.clear()
