"""The real scheduler on virtual hardware: its lives over one database in memory."""

from pathlib import Path
from random import Random

import apsw
import msgspec

from cronward.protocol import config as configs
from cronward.protocol import launch
from cronward.protocol.control import Response
from cronward.protocol.paths import Paths
from cronward.scheduler import due, life, queries
from cronward.scheduler.actor import Actor
from cronward.scheduler.database import STATEMENTS_MAX
from cronward.scheduler.effects import Address
from cronward.scheduler.launcher_link import LinkState
from cronward.scheduler.requests import Arrived
from cronward.scheduler.settings import Settings
from cronward.scheduler.store import Store
from cronward.scheduler.world import Turn, World
from tests.simulation.support.machine import Machine, SchedulerCrashed
from tests.simulation.support.observer import Observer
from tests.simulation.support.ports import SimulatedPorts
from tests.simulation.support.seen import (
    Answered,
    EpochClosed,
    Launched,
    LifeEnded,
    TurnBegan,
    TurnEnded,
)

KEY = b"k" * 32
NOWHERE = Path("/nonexistent/cronward")
IDLE_MAX_MS = 6 * 3_600_000
BUSY_TURNS_MAX = 20_000
CANCEL_WATCHED_MS = 30_000
RESTART_MAX_MS = 300_000


class Stuck(Exception):
    """The loop turns and turns while no time passes."""


class SimulatedScheduler:
    """At most one life at a time. Whoever sends to it while there is none, sends into nothing."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._crashes: Random = machine.scenario.random("commit crashes")
        self._lives = 0
        self._turns_at = (0, 0)
        self.capacity = machine.scenario.runs_at_once
        self._connection = apsw.Connection(":memory:", statementcachesize=STATEMENTS_MAX)
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute(queries.SCHEMA.read_text(encoding="utf-8"))
        self._observer = Observer(self._connection)
        self.is_up = False
        self.wake = False
        """Something happened that a wait of a second would have noticed."""
        self.cancelling: dict[str, int] = {}
        """Runs that were told to end, with the monotonic ms of the last time: they are told again while time passes."""

    # lives

    def start(self) -> None:
        machine = self._machine
        self._lives += 1
        config = configs.Config(capacity=configs.Capacity(self.capacity))
        self.store = Store(self._connection)
        self.world = World(
            paths=Paths(NOWHERE / "s", NOWHERE / "r"),
            clock=machine.clock,
            settings=Settings(NOWHERE / "cronward.toml", {}, config),
            instance=f"life-{self._lives:04}",
            boot_id=machine.boot_id,
            secret_key=KEY,
        )
        self.ports = SimulatedPorts(self._pass_time, machine.to_executor, self._to_launcher, self._answered)
        machine.see(TurnBegan(machine.clock.wall_ms(), self.capacity))
        self.store.begin()
        life.begin(Turn(self.world, self.store))
        self.store.commit()
        self._drain()
        machine.see(TurnEnded(machine.clock.wall_ms(), deciding=False, more=False))
        self.actor = Actor(self.world, self.store, self.ports)
        self.is_up = True
        machine.say("scheduler", f"starts its life {self._lives}")

    def kill(self, why: str) -> None:
        """What was not committed is gone, and so is what was on its way here."""
        if not self.is_up:
            return
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.is_up = False
        self.cancelling.clear()
        self._machine.say("scheduler", why)
        self._machine.see(LifeEnded())

    def end(self) -> None:
        """The end of an orderly stop."""
        self.store.begin()
        life.end(Turn(self.world, self.store))
        self.store.commit()
        self.kill("stops")

    def reconfigure(self, capacity: int) -> None:
        self.capacity = capacity
        if self.is_up:
            snapshot = self.world.settings.snapshot
            config = msgspec.structs.replace(snapshot.config, capacity=configs.Capacity(capacity))
            self.world.settings.snapshot = configs.Snapshot(snapshot.version + 1, config)

    # turns

    def turn(self) -> None:
        """One turn of the real loop. A crash inside it ends the life."""
        machine = self._machine
        self._count_turn()
        try:
            self.actor.turn(self._began)
        except SchedulerCrashed:
            self._crashed()
            return
        deciding = due.may_decide(self.world)
        self._drain()
        machine.see(TurnEnded(machine.clock.wall_ms(), deciding, more=self.actor._more))

    def _crashed(self) -> None:
        """In the middle of a turn: at a commit, after which it is started again soon, or killed while it waited."""
        machine = self._machine
        if not self.is_up:
            return
        self.kill("crashes")
        self._drain()
        machine.see(TurnEnded(machine.clock.wall_ms(), deciding=False, more=False))
        machine.agenda.after(self._crashes.randrange(200, RESTART_MAX_MS), self.start_if_down)

    def start_if_down(self) -> None:
        if not self.is_up:
            self.start()

    def _began(self) -> None:
        """After the wait: time stands still from here to the end of the turn."""
        for _, body in self.ports.inbox.launch:
            message = launch.decode_from_launcher(body)
            if isinstance(message, launch.Accepted | launch.Refused | launch.Exited):
                self._machine.see(Answered(message.run))
        self._machine.see(TurnBegan(self._machine.clock.wall_ms(), self.world.settings.config.capacity.runs))

    def pass_point(self, name: str) -> None:
        """Stands for failpoints.hit: now and then the process ends there."""
        if self._crashes.random() < self._machine.scenario.commit_crash and not self._machine.calm:
            self._machine.say("scheduler", f"at {name}")
            raise SchedulerCrashed

    def _drain(self) -> None:
        for event in self._observer.drain():
            self._machine.see(event)

    def _count_turn(self) -> None:
        mono_ms, turns = self._turns_at
        now_ms = self._machine.clock.mono_ms()
        self._turns_at = (now_ms, turns + 1 if now_ms == mono_ms else 0)
        if turns > BUSY_TURNS_MAX:
            raise Stuck(f"{turns} turns and no time has passed")

    # time

    def _pass_time(self, timeout_ms: int) -> None:
        """Lets the rest of the world go on until there is something to do here. A second's wait of an idle scheduler
        is a wait for the next deadline: what it would do meanwhile is nothing."""
        machine, ports = self._machine, self.ports
        wait_ms = timeout_ms if self._is_watchful() or timeout_ms < 1000 else self._until_deadline_ms()
        until_ms = machine.clock.mono_ms() + wait_ms
        self.wake = False
        while not ports.has_something and not self.wake:
            next_ms = machine.agenda.next_ms()
            if next_ms is None or next_ms > until_ms:
                machine.clock.pass_to(until_ms)
                break
            machine.agenda.run_next()
            if not self.is_up:
                raise SchedulerCrashed
        machine.heartbeat()

    def _is_watchful(self) -> bool:
        """Whether something happens by the second."""
        link, now_ms = self.world.link, self._machine.clock.mono_ms()
        self.cancelling = {run: told for run, told in self.cancelling.items() if now_ms - told < CANCEL_WATCHED_MS}
        waits = link.state is LinkState.WELCOMED or bool(link.unanswered or link.undecided or self.cancelling)
        return waits or bool(self.world.notices_sent) or (link.state is LinkState.READY and not self._machine.beats)

    def _until_deadline_ms(self) -> int:
        if not due.may_decide(self.world):
            return IDLE_MAX_MS
        deadline_ms = self.store.integer("next_deadline") or self._machine.clock.wall_ms() + IDLE_MAX_MS
        return max(0, min(IDLE_MAX_MS, deadline_ms - self._machine.clock.wall_ms()))

    # messages

    def hear_executor(self, address: Address, body: bytes) -> None:
        self.ports.inbox.run.append((address, body))

    def hear_launcher(self, address: Address, body: bytes) -> None:
        self.ports.inbox.launch.append((address, body))

    def ask(self, method: str, params: dict[str, object]) -> None:
        """A client's request."""
        body = msgspec.json.encode({"id": 1, "method": method, "params": params})
        self.ports.inbox.requests.append(Arrived("control", [b"client"], body, "localhost:1000:1000:77"))

    def _answered(self, body: bytes) -> None:
        response = msgspec.json.decode(body, type=Response)
        if response.error is not None:
            self._machine.say("answer", f"{response.error.code}: {response.error.message}")

    def _to_launcher(self, address: Address, message: launch.ToLauncher) -> None:
        match message:
            case launch.Launch():
                self._machine.see(Launched(message.run))
            case launch.RegisterAgain() | launch.Welcome() | launch.Left():
                self._machine.see(EpochClosed())
            case launch.Cancel():
                self.cancelling[message.run] = self._machine.clock.mono_ms()
            case _:
                pass
        self._machine.to_launcher(address, message)

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Reads the database from outside."""
        return list(self._connection.execute(sql))
