"""A scheduler under test, with the test as its launcher and as its executors over real sockets."""

import time
from collections.abc import Mapping
from typing import Self, TypeVar

import msgspec
import zmq

from cronward.protocol import control, ids, launch, outcome, run, sockets
from cronward.protocol.identity import own_identity
from cronward.protocol.launch import GatewayState, PoolState, RunState
from cronward.protocol.outcome import Outcome, Reason, Status
from cronward.protocol.paths import Paths
from tests.support.waiting import now_ms

DEADLINE_S = 10.0
QUIET_MS = 150
"""How long nothing has to come for a test to believe that nothing comes."""

ToMe = TypeVar("ToMe", bound=launch.ToLauncher)
ToRun = TypeVar("ToRun", bound=run.ToExecutor)


class ScriptedLauncher:
    """A DEALER on `launch` that says only what the test tells it to."""

    def __init__(self, paths: Paths) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = sockets.dealer(self._context, str(paths.launch), launch.MESSAGE_MAX_BYTES)
        self.inbox: list[launch.ToLauncher] = []
        self.launches: list[launch.Launch] = []
        """Every launch that came, in order."""
        self.welcome: launch.Welcome | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._context.destroy(linger=0)

    def say(self, *messages: launch.FromLauncher) -> None:
        for message in messages:
            self.say_bytes(launch.encode(message))

    def say_bytes(self, data: bytes) -> None:
        assert self._socket.poll(int(DEADLINE_S * 1000), zmq.POLLOUT), "nobody is there"
        self._socket.send(data)

    def expect(self, kind: type[ToMe], deadline_s: float = DEADLINE_S) -> ToMe:
        """The next message of this type; others stay in `inbox`. Raises AssertionError."""
        end = time.monotonic() + deadline_s
        while True:
            for message in self.inbox:
                if isinstance(message, kind):
                    self.inbox.remove(message)
                    return message
            left = end - time.monotonic()
            assert left > 0, f"no {kind.__name__} came, only {self.inbox}"
            self._read(int(left * 1000) + 1)

    def gather(self, quiet_ms: int = QUIET_MS) -> list[launch.ToLauncher]:
        """Everything that comes until nothing has come for a while; empties `inbox`."""
        while self._read(quiet_ms):
            pass
        found, self.inbox = self.inbox, []
        return found

    def new_launches(self, quiet_ms: int = QUIET_MS) -> list[launch.Launch]:
        """Launches that come until nothing has come for a while."""
        return [message for message in self.gather(quiet_ms) if isinstance(message, launch.Launch)]

    def register(self) -> launch.Welcome:
        self.say(launch.Register(own_identity(), "test"))
        self.welcome = self.expect(launch.Welcome)
        return self.welcome

    def inventory(self, found: Mapping[str, RunState] | None = None) -> launch.Reconciled:
        """Gives the inventory for the last Welcome; what is not in `found` is absent."""
        welcome = self.welcome
        assert welcome is not None
        runs = {name: (found or {}).get(name, RunState.ABSENT) for name in welcome.active}
        self.say(launch.Inventory(welcome.instance, welcome.epoch, runs))
        return self.expect(launch.Reconciled)

    def reconcile(self, found: Mapping[str, RunState] | None = None) -> launch.Welcome:
        welcome = self.register()
        self.inventory(found)
        return welcome

    def beat(self, cannot_start: str | None = None) -> None:
        welcome = self.welcome
        assert welcome is not None
        heartbeat = launch.Heartbeat(welcome.instance, welcome.epoch, GatewayState.NONE, PoolState(), cannot_start)
        self.say(heartbeat)

    def accept(self, run_id: str) -> None:
        self.say(launch.Accepted(run_id, 1))

    def accept_one(self) -> launch.Launch:
        """The next launch, accepted."""
        came = self.expect(launch.Launch)
        self.accept(came.run)
        return came

    def _read(self, wait_ms: int) -> bool:
        if not self._socket.poll(wait_ms):
            return False
        message = launch.decode_to_launcher(self._socket.recv())
        if isinstance(message, launch.Launch):
            self.launches.append(message)
        self.inbox.append(message)
        return True


class ScriptedExecutor:
    """A DEALER on `run` that holds one run."""

    def __init__(self, paths: Paths, run_id: str, secret: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = sockets.dealer(self._context, str(paths.run), run.MESSAGE_MAX_BYTES)
        self.run_id = run_id
        self.secret = secret

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.destroy(linger=0)

    def say(self, message: run.FromExecutor) -> None:
        self.say_bytes(run.encode(message))

    def say_bytes(self, data: bytes) -> None:
        assert self._socket.poll(int(DEADLINE_S * 1000), zmq.POLLOUT), "nobody is there"
        self._socket.send(data)

    def expect(self, kind: type[ToRun], deadline_s: float = DEADLINE_S) -> ToRun:
        assert self._socket.poll(int(deadline_s * 1000)), f"no {kind.__name__} came"
        message = run.decode_to_executor(self._socket.recv())
        assert isinstance(message, kind), message
        return message

    def hears_nothing(self) -> bool:
        return not self._socket.poll(QUIET_MS)

    def hello(self) -> run.HelloAnswer:
        self.say(run.Hello(self.run_id, self.secret, 1))
        return self.expect(run.HelloAnswer)

    def report(self, status: Status = Status.OK, reason: Reason | None = None, times: int = 1) -> None:
        """One outcome, each time acknowledged."""
        report = run.Report(self.run_id, self.secret, outcome.encode(made(self.run_id, status, reason)))
        for _ in range(times):
            self.say(report)
            assert self.expect(run.Recorded).run == self.run_id


def made(run_id: str, status: Status = Status.OK, reason: Reason | None = None, message: str = "") -> Outcome:
    """An outcome of a run that took no time."""
    if status is Status.ERROR and reason is None:
        reason = Reason.EXIT_CODE
    now = now_ms()
    return Outcome(run_id, status, reason, message, now, now, 0, exit_code=0 if status is Status.OK else 1)


def secret_of(paths: Paths, run_id: str) -> str:
    """The run's secret, as an executor would have it from its launch."""
    return ids.run_secret(paths.secret_key.read_bytes(), run_id)


class Listener:
    """A subscriber to the event stream."""

    def __init__(self, paths: Paths) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = sockets.subscriber(self._context, str(paths.events))
        self.events: list[control.Event] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.destroy(linger=0)

    def wait_for(self, event: str, deadline_s: float = DEADLINE_S) -> control.Event:
        """The next event of this name; all that come are kept in `events`."""
        end = time.monotonic() + deadline_s
        while (left := end - time.monotonic()) > 0:
            if self._socket.poll(int(left * 1000) + 1):
                self.events.append(msgspec.json.decode(self._socket.recv(), type=control.Event))
                if self.events[-1].event == event:
                    return self.events[-1]
        raise AssertionError(f"no event {event}, only {[found.event for found in self.events]}")
