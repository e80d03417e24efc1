"""The scheduler over a failing disk, with a record of what it committed and of what it told its peers."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import apsw
import msgspec

from cronward.protocol import control, launch, run
from cronward.protocol.config import Config
from cronward.protocol.launch import RunState
from cronward.scheduler.database import close_database
from cronward.scheduler.effects import Address
from cronward.scheduler.requests import Arrived
from cronward.scheduler.store import StorageBlocked, Store
from tests.storage.support.disk import Disk
from tests.storage.support.picture import Picture, picture
from tests.support.scheduler_bench import CLIENT, IDENTITY, LAUNCHER, Bench


class History:
    """What the database held after each commit that succeeded, and what the commit that did not would have made."""

    def __init__(self, before: Picture) -> None:
        self.committed = [before]
        self.in_flight: Picture | None = None
        self.refused = False
        """The last commit found no space."""


class WatchedStore(Store):
    """Takes a picture inside each transaction, just before its commit."""

    def __init__(self, connection: apsw.Connection, disk: Disk, history: History) -> None:
        super().__init__(connection)
        self._disk = disk
        self._history = history

    def commit(self) -> None:
        history = self._history
        if not self._disk.dead:
            with self._disk.unseen():
                history.in_flight = picture(self.connection)
        try:
            super().commit()
        except StorageBlocked:
            history.in_flight = None
            history.refused = True
            raise
        history.refused = False
        if history.in_flight is not None and not self._disk.dead:
            history.committed.append(history.in_flight)
            history.in_flight = None


class Asked(msgspec.Struct, frozen=True):
    """A request that a client sent."""

    method: str
    params: Mapping[str, object]


class Told(msgspec.Struct):
    """How much was sent on each socket."""

    answers: int
    to_executors: int
    to_launcher: int
    events: int


class Rig(Bench):
    """A bench whose disk fails. What is sent once the disk is dead was never sent: the process had ended."""

    synchronous: int | None = None

    def __init__(self, root: Path, disk: Disk, config: Config | None = None, lives_before: int = 100) -> None:
        self.disk = disk
        self._lives_before = lives_before
        self.asked: dict[int, Asked] = {}
        self.launched: list[str] = []
        """Every launch that left, over all lives, by run."""
        self.lost: set[str] = set()
        """Launches that the launcher lost."""
        self.history = History({})
        self.past: list[Picture] = []
        """What commits before the record starts had made."""
        self._planted: list[tuple[ModuleType, str, object]] = []
        disk.at_death = self._note_death
        super().__init__(root, config)
        self.accepting = True

    def make_store(self) -> Store:
        self.past += self.history.committed
        with self.disk.unseen():
            self.history = History(picture(self.connection))
        self._death: Told | None = None
        return WatchedStore(self.connection, self.disk, self.history)

    def start_history(self) -> None:
        """What the database holds now is where the record starts. A closed one stays what it was."""
        self.past += self.history.committed
        try:
            self.history.committed[:] = [picture(self.connection)]
        except apsw.ConnectionClosedError:
            return

    def _note_death(self) -> None:
        self._death = self._told() if hasattr(self, "ports") else Told(0, 0, 0, 0)

    def _told(self) -> Told:
        ports = self.ports
        return Told(len(ports.answers), len(ports.run_wire.sent), len(ports.launch_wire.sent), len(ports.events))

    # what was told in this life

    @property
    def told(self) -> Told:
        return self._death or self._told()

    def answers(self) -> list[tuple[Asked, control.Response]]:
        """Requests with their answers."""
        pairs = [(answer.id, answer) for answer in self.ports.answers[: self.told.answers]]
        return [(self.asked[number], answer) for number, answer in pairs if isinstance(number, int)]

    def to_executors(self) -> list[run.ToExecutor]:
        return [run.decode_to_executor(frames[-1]) for frames in self.ports.run_wire.sent[: self.told.to_executors]]

    def to_launcher(self) -> list[launch.ToLauncher]:
        sent = self.ports.launch_wire.sent[: self.told.to_launcher]
        return [launch.decode_to_launcher(frames[-1]) for frames in sent]

    def told_events(self) -> list[control.Event]:
        return self.ports.events[: self.told.events]

    # peers that repeat what they want answered

    def post(self, method: str, params: Mapping[str, object] | None = None, socket: str = "control") -> None:
        number = len(self.asked) + 1
        self.asked[number] = Asked(method, params or {})
        body = msgspec.json.encode({"id": number, "method": method, "params": params or {}})
        self.ports.batch.requests.append(Arrived(socket, CLIENT, body, "localhost:0:0:77"))

    def request(self, method: str, params: Mapping[str, object] | None = None) -> control.Response:
        """A request and its answer, whatever it is. Raises StorageFailed if the process ends instead."""
        before = len(self.ports.answers)
        self.post(method, params)
        self.turn()
        (answer,) = self.ports.answers[before:]
        return answer

    def reconcile_truly(self, address: Address = LAUNCHER) -> None:
        """The launcher registers; it holds what was launched, and nothing else."""
        self.note_launches()
        self.tell(launch.Register(IDENTITY, "0"), address=address)
        welcomes = self.orders(launch.Welcome, address)
        if not welcomes:
            return
        welcome = welcomes[-1]
        holds = set(self.launched) - self.lost
        held = {name: RunState.HELD if name in holds else RunState.ABSENT for name in welcome.active}
        self.tell(launch.Inventory(welcome.instance, welcome.epoch, held), address=address)

    def note_launches(self) -> None:
        """Remembers what left in this life, before it ends."""
        for order in self.to_launcher():
            if isinstance(order, launch.Launch) and order.run not in self._noted:
                self.launched.append(order.run)
                self._noted.add(order.run)

    def begin(self) -> None:
        self._noted: set[str] = set()
        self._lives = max(self._lives, self._lives_before)
        super().begin()

    # ends

    def abandon(self) -> None:
        """The process is gone: its connection does nothing more to the files."""
        self.note_launches()
        self.disk.dead = True
        try:
            self.connection.close()
        except apsw.Error:
            return
        finally:
            self.disk.revive()

    def end(self) -> None:
        """Closes in good order."""
        close_database(self.connection)

    def end_quietly(self) -> None:
        """Closes whatever is open."""
        self.connection.close()

    # the product changed for one case

    def plant(self, module: ModuleType, name: str, value: object) -> None:
        self._planted.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    def unplant(self) -> None:
        while self._planted:
            module, name, value = self._planted.pop()
            setattr(module, name, value)
