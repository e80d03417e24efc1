"""The simulated machine: its time, its network, what is seen of it, and who is where."""

import hashlib
from collections import deque
from typing import TYPE_CHECKING, Protocol

from cronward.protocol import launch, run
from cronward.scheduler.effects import Address
from tests.simulation.support.clock import Agenda, VirtualClock
from tests.simulation.support.network import Network
from tests.simulation.support.scenario import Scenario
from tests.simulation.support.seen import Seen

if TYPE_CHECKING:
    from tests.simulation.support.executor import SimulatedExecutor
    from tests.simulation.support.launcher import SimulatedLauncher
    from tests.simulation.support.scheduler import SimulatedScheduler

TRACE_KEPT = 400


class SchedulerCrashed(BaseException):
    """The scheduler's process is gone; no handler of its own may catch that."""


class Checker(Protocol):
    """Watches one invariant."""

    def see(self, event: Seen) -> None:
        """Raises Broken."""
        ...


class Broken(Exception):
    """An invariant does not hold. The text names the job or the run."""


class Machine:
    """Everything that outlives a process."""

    def __init__(self, scenario: Scenario, checkers: list[Checker]) -> None:
        self.scenario = scenario
        self.clock = VirtualClock(scenario.start_ms)
        self.agenda = Agenda(self.clock)
        self.network = Network(self.agenda, scenario)
        self.checkers = checkers
        self.calm = False
        """Faults are over."""
        self.boots = 1
        self.executors: dict[bytes, SimulatedExecutor] = {}
        self.trace: deque[str] = deque(maxlen=TRACE_KEPT)
        self.digest = hashlib.sha256()
        self.events = 0
        self.scheduler: SimulatedScheduler
        self.launcher: SimulatedLauncher

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boots}"

    @property
    def beats(self) -> bool:
        """Whether the launcher sends heartbeats."""
        return self.launcher.is_up and not self.launcher.is_stalled

    # what is seen

    def see(self, event: Seen) -> None:
        """Shows an event to every checker, and keeps it."""
        self.events += 1
        self._write(repr(event))
        for checker in self.checkers:
            checker.see(event)

    def say(self, who: str, what: str) -> None:
        """A line of the trace that no checker reads."""
        self._write(f"{who} {what}")

    def _write(self, text: str) -> None:
        line = f"{self.clock.mono_ms()} {self.clock.wall_ms()} {text}"
        self.trace.append(line)
        self.digest.update(line.encode())

    # messages

    def from_executor(self, address: Address, message: run.FromExecutor) -> None:
        life, body = self.scheduler.world if self.scheduler.is_up else None, run.encode(message)

        def deliver() -> None:
            if self.scheduler.is_up and self.scheduler.world is life:
                self.scheduler.hear_executor(address, body)

        self.network.send((b"up", *address), deliver)

    def from_launcher(self, address: Address, message: launch.FromLauncher) -> None:
        life, body = self.scheduler.world if self.scheduler.is_up else None, launch.encode(message)

        def deliver() -> None:
            if self.scheduler.is_up and self.scheduler.world is life:
                self.scheduler.hear_launcher(address, body)

        self.network.send((b"up", *address), deliver)

    def to_executor(self, address: Address, message: run.ToExecutor) -> None:
        def deliver() -> None:
            executor = self.executors.get(address[0])
            if executor is not None:
                executor.hear(message)

        self.network.send((b"down", *address), deliver)

    def to_launcher(self, address: Address, message: launch.ToLauncher) -> None:
        def deliver() -> None:
            if self.launcher.is_up and self.launcher.address == address:
                self.launcher.hear(message)

        self.network.send((b"down", *address), deliver)

    def heartbeat(self) -> None:
        """The launcher's beat of the last seconds, where they were passed over at once."""
        self.launcher.beat()
