"""Messages on their way: in order on each connection, sometimes late, lost or twice."""

from collections.abc import Callable

from tests.simulation.support.clock import Agenda
from tests.simulation.support.scenario import Scenario

Deliver = Callable[[], None]


class Network:
    """Connections come into being with their first message."""

    def __init__(self, agenda: Agenda, scenario: Scenario) -> None:
        self._agenda = agenda
        self._random = scenario.random("network")
        self._scenario = scenario
        self._last_ms: dict[object, int] = {}
        self.perfect = False
        """Nothing is lost or repeated any more."""

    def send(self, connection: object, deliver: Deliver) -> None:
        chance = self._random.random()
        delay_ms = 0 if chance < 0.7 else self._random.randrange(20) if chance < 0.995 else self._random.randrange(4000)
        arrival_ms = max(self._last_ms.get(connection, 0), self._agenda.clock.mono_ms() + delay_ms)
        self._last_ms[connection] = arrival_ms
        if self._random.random() < self._scenario.loss and not self.perfect:
            return
        self._agenda.at(arrival_ms, deliver)
        if self._random.random() < self._scenario.repetition and not self.perfect:
            self._agenda.at(arrival_ms, deliver)
