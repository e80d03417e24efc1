"""A scheduler without sockets and without time: the real actor over a real database, with a clock that the test moves.

What peers would send is put into the next batch; what they would get is kept in lists.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec
import zmq

from cronward.protocol import control, ids, launch, outcome, run
from cronward.protocol.config import Config
from cronward.protocol.errors import ErrorBody
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.launch import GatewayState, PoolState, RunState
from cronward.protocol.outcome import Outcome, Reason, Status
from cronward.protocol.paths import Paths
from cronward.protocol.views import JobView, NoticeView, RunAnswer, RunView
from cronward.scheduler import life
from cronward.scheduler.actor import Actor
from cronward.scheduler.database import close_database, open_database
from cronward.scheduler.effects import Address
from cronward.scheduler.ports import Batch, Ports
from cronward.scheduler.requests import Arrived
from cronward.scheduler.settings import Settings
from cronward.scheduler.store import Store, Value
from cronward.scheduler.world import Turn, World

START_MS = 1_800_000_000_000
KEY = b"k" * 32
LAUNCHER: Address = [b"launcher"]
EXECUTOR: Address = [b"executor"]
CLIENT: Address = [b"client"]
IDENTITY = ProcessIdentity(4242, 1, "boot-a")

T = TypeVar("T")


class FakeClock:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.wall = START_MS
        self.mono = 1_000_000

    def wall_ms(self) -> int:
        return self.wall

    def mono_ms(self) -> int:
        return self.mono

    def advance(self, ms: int) -> None:
        self.wall += ms
        self.mono += ms


class Wire:
    """What is sent on one socket. `broken` makes every send fail as to a peer that is gone."""

    def __init__(self) -> None:
        self.sent: list[list[bytes]] = []
        self.broken = False

    def send_multipart(self, frames: list[bytes], flags: int) -> None:
        assert flags == zmq.DONTWAIT
        if self.broken:
            raise zmq.ZMQError(zmq.EHOSTUNREACH)
        self.sent.append(frames)


class FakePorts(Ports):
    """Ports whose batch the test fills."""

    def __init__(self) -> None:
        self.batch = Batch()
        self.run_wire, self.launch_wire = Wire(), Wire()
        self.run = self.run_wire  # type: ignore[assignment]  # stands for a socket
        self.launch = self.launch_wire  # type: ignore[assignment]  # stands for a socket
        self.answers: list[control.Response] = []
        self.events: list[control.Event] = []
        self.waited_ms: list[int] = []
        self.full = False

    def wait(self, timeout_ms: int) -> None:
        self.waited_ms.append(timeout_ms)

    def take(self) -> Batch:
        batch, self.batch = self.batch, Batch()
        return batch

    def is_full(self, arrived: Arrived) -> bool:
        return self.full

    def answer(self, socket: str, address: Address, body: bytes) -> None:
        self.answers.append(msgspec.json.decode(body, type=control.Response))

    def flush(self) -> None:
        """Nothing waits."""

    def publish(self, body: bytes) -> None:
        self.events.append(msgspec.json.decode(body, type=control.Event))

    def ensure_own(self) -> None:
        """There are no socket files."""


class Refusal(Exception):
    """A request was answered with an error."""

    def __init__(self, error: ErrorBody) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.code = error.code
        self.error = error


class Bench:
    """One database and one life after the other of a scheduler over it."""

    synchronous: int | None = 0
    """SQLite's number instead of the product's own: most tests cut no power."""

    def __init__(
        self, root: Path, config: Config | None = None, connect: Callable[[Path], apsw.Connection] | None = None
    ):
        self.paths = Paths(root / "s", root / "r")
        self.paths.state.mkdir(parents=True, exist_ok=True)
        self.clock = FakeClock()
        self.config = config or Config()
        self.boot_id = "boot-a"
        self._connect = connect or open_database
        self._lives = 0
        self.launches: list[launch.Launch] = []
        """Every launch that ever left, over all lives."""
        self.accepting = True
        self.cannot_start: str | None = None
        self.begin()

    # lives

    def begin(self) -> None:
        """A new life over what is in the database."""
        self._lives += 1
        self.connection = self._connect(self.paths.database)
        if self.synchronous is not None:
            self.connection.pragma("synchronous", self.synchronous)
        self.store = self.make_store()
        self.world = World(
            paths=self.paths,
            clock=self.clock,
            settings=Settings(self.paths.state / "cronward.toml", {}, self.config),
            instance=f"life-{self._lives:04}",
            boot_id=self.boot_id,
            secret_key=KEY,
        )
        self.store.begin()
        life.begin(Turn(self.world, self.store))
        self.store.commit()
        self.ports = FakePorts()
        self.actor = Actor(self.world, self.store, self.ports)

    def make_store(self) -> Store:
        return Store(self.connection)

    def crash(self) -> None:
        """The life ends without a word; what was committed is there."""
        self.connection.close()
        self.begin()

    def close(self) -> None:
        close_database(self.connection)

    # turns

    def turn(self, ms: int = 0, silent: bool = False) -> None:
        """One turn, `ms` after the last. A reconciled launcher beats before it and accepts what was launched in it,
        unless it is `silent`."""
        self.clock.advance(ms)
        link = self.world.link
        if ms and link.state == "ready" and not silent:
            beat = launch.Heartbeat(link.instance, link.epoch, GatewayState.NONE, PoolState(), self.cannot_start)
            self.ports.batch.launch.append((link.address or LAUNCHER, launch.encode(beat)))
        before = len(self.ports.launch_wire.sent)
        self.actor.turn(lambda: None)
        orders = [launch.decode_to_launcher(frames[-1]) for frames in self.ports.launch_wire.sent[before:]]
        launched = [order for order in orders if isinstance(order, launch.Launch)]
        self.launches += launched
        if self.accepting:
            accepted = [(LAUNCHER, launch.encode(launch.Accepted(sent.run, 7))) for sent in launched]
            self.ports.batch.launch += accepted

    def turns(self, count: int = 3) -> None:
        for _ in range(count):
            self.turn()

    # the launcher

    def tell(self, *messages: launch.FromLauncher, address: Address = LAUNCHER) -> None:
        """The launcher says something, in one turn."""
        self.ports.batch.launch += [(address, launch.encode(message)) for message in messages]
        self.turn()

    def orders(self, kind: type[T], address: Address = LAUNCHER) -> list[T]:
        """What was sent to a launcher in this life, of one type."""
        sent = [frames for frames in self.ports.launch_wire.sent if frames[:-1] == address]
        messages = [launch.decode_to_launcher(frames[-1]) for frames in sent]
        return [message for message in messages if isinstance(message, kind)]

    def register(self, address: Address = LAUNCHER) -> launch.Welcome:
        self.tell(launch.Register(IDENTITY, "0"), address=address)
        return self.orders(launch.Welcome, address)[-1]

    def reconcile(self, found: Mapping[str, RunState] | None = None, address: Address = LAUNCHER) -> launch.Welcome:
        """Registers and gives the inventory: what is not in `found` is absent."""
        welcome = self.register(address)
        runs = {name: (found or {}).get(name, RunState.ABSENT) for name in welcome.active}
        self.tell(launch.Inventory(welcome.instance, welcome.epoch, runs), address=address)
        return welcome

    # executors

    def report(self, run_id: str, status: Status = Status.OK, reason: Reason | None = None) -> None:
        """An executor reports an outcome of the run."""
        body = outcome.encode(self.outcome(run_id, status, reason))
        self.say(run.Report(run_id, ids.run_secret(KEY, run_id), body))

    def say(self, message: run.FromExecutor, address: Address = EXECUTOR) -> None:
        self.ports.batch.run.append((address, run.encode(message)))
        self.turn()

    def outcome(self, run_id: str, status: Status = Status.OK, reason: Reason | None = None) -> Outcome:
        if status is Status.ERROR and reason is None:
            reason = Reason.EXIT_CODE
        now = self.clock.wall
        return Outcome(run_id, status, reason, "" if status is Status.OK else "it failed", now, now, 0, exit_code=0)

    # clients

    def post(self, method: str, params: Mapping[str, object] | None = None, socket: str = "control") -> None:
        """Puts a request into the next batch."""
        body = msgspec.json.encode({"id": 1, "method": method, "params": params or {}})
        self.ports.batch.requests.append(Arrived(socket, CLIENT, body, "localhost:0:0:77"))

    def ask(self, method: str, kind: type[T], params: Mapping[str, object] | None = None) -> T:
        """A request and its answer, in one turn. Raises Refusal."""
        self.post(method, params)
        before = len(self.ports.answers)
        self.turn()
        (answer,) = self.ports.answers[before:]
        if answer.error is not None:
            raise Refusal(answer.error)
        assert isinstance(answer.payload, msgspec.Raw)
        return msgspec.json.decode(answer.payload, type=kind)

    def add(self, schedule: Mapping[str, object] | None = None, **fields: object) -> JobView:
        """A job; without a schedule it is far from being due."""
        schedule = schedule or {"kind": "every", "everyMs": 365 * 86_400_000}
        return self.ask(
            "cron.add", JobView, {"schedule": schedule, "payload": {"kind": "command", "argv": ["/bin/true"]}, **fields}
        )

    def every(self, every_ms: int, **fields: object) -> JobView:
        return self.add({"kind": "every", "everyMs": every_ms}, **fields)

    def at(self, in_ms: int, **fields: object) -> JobView:
        return self.add({"kind": "at", "at": str(self.clock.wall + in_ms)}, **fields)

    def job(self, job: JobView) -> JobView:
        return self.ask("cron.get", JobView, {"id": job.id})

    def run_now(self, job: JobView, mode: str = "force") -> RunAnswer:
        return self.ask("cron.run", RunAnswer, {"id": job.id, "mode": mode})

    def start(self, job: JobView) -> str:
        """Asks for a run by hand and lets it become active; its id."""
        answer = self.run_now(job)
        assert answer.run_id is not None, answer
        self.turns()
        return answer.run_id

    def run(self, run_id: str) -> RunView:
        return self.ask("run.get", RunView, {"runId": run_id})

    # what is in the database, and on the event stream

    def sql(self, text: str, *values: Value) -> list[tuple[Value, ...]]:
        return list(self.connection.execute(text, values))

    def states(self) -> dict[str, str]:
        """Every run with its state."""
        return {
            str(run_id): str(state) for run_id, state in self.sql("SELECT run_id, state FROM runs ORDER BY arrival")
        }

    def events(self, name: str, kind: type[T]) -> list[T]:
        """Payloads of the events of one name, in this life."""
        return [msgspec.json.decode(event.payload, type=kind) for event in self.ports.events if event.event == name]

    def run_events(self) -> list[RunView]:
        """Changes of runs that were told, in this life."""
        told = [
            event.payload for event in self.ports.events if event.event == "cron" and b'"runId"' in bytes(event.payload)
        ]
        return [msgspec.json.decode(payload, type=RunView) for payload in told]

    def notices(self) -> list[NoticeView]:
        return self.events("notice", NoticeView)
