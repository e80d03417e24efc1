"""The scheduler's ports without sockets: waiting lets virtual time pass, sending puts messages on the network."""

from collections.abc import Callable

from cronward.protocol import launch, run
from cronward.scheduler.effects import Address
from cronward.scheduler.ports import Batch, Ports
from cronward.scheduler.requests import Arrived


class Wire:
    """Stands for a ROUTER: gives each message to `deliver`."""

    def __init__(self, deliver: Callable[[Address, bytes], None]) -> None:
        self._deliver = deliver

    def send_multipart(self, frames: list[bytes], flags: int) -> None:
        self._deliver(frames[:-1], frames[-1])


class SimulatedPorts(Ports):
    """Ports of one life."""

    def __init__(
        self,
        pass_time: Callable[[int], None],
        to_executor: Callable[[Address, run.ToExecutor], None],
        to_launcher: Callable[[Address, launch.ToLauncher], None],
        to_client: Callable[[bytes], None],
    ) -> None:
        self.inbox = Batch()
        self._pass_time = pass_time
        self._to_client = to_client
        self.run = Wire(  # type: ignore[assignment]  # stands for a socket
            lambda address, body: to_executor(address, run.decode_to_executor(body))
        )
        self.launch = Wire(  # type: ignore[assignment]  # stands for a socket
            lambda address, body: to_launcher(address, launch.decode_to_launcher(body))
        )

    @property
    def has_something(self) -> bool:
        return bool(self.inbox.run or self.inbox.launch or self.inbox.requests)

    def wait(self, timeout_ms: int) -> None:
        self._pass_time(timeout_ms)

    def take(self) -> Batch:
        batch, self.inbox = self.inbox, Batch(run=[], launch=[], requests=[])
        return batch

    def is_full(self, arrived: Arrived) -> bool:
        return False

    def answer(self, socket: str, address: Address, body: bytes) -> None:
        self._to_client(body)

    def flush(self) -> None:
        """Nothing waits."""

    def publish(self, body: bytes) -> None:
        """Nobody subscribes."""

    def ensure_own(self) -> None:
        """There are no socket files."""
