"""A launcher under test, with the test as its scheduler over a real ROUTER."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import zmq

from cronward.protocol import launch, outcome, rundir, sockets
from cronward.protocol.ids import run_key
from cronward.protocol.launch import LauncherConfig
from cronward.protocol.rundir import Limits
from tests.support import failpoints
from tests.support.instance import Instance
from tests.support.processes import Daemon
from tests.support.waiting import Overdue, wait_until

PROGRAM = Path(__file__).with_name("launcher_with_fakes.py")
CONFIG = LauncherConfig(version=1, ready=2, executors_max=8, grace_ms=500)
LIMITS = Limits(timeout_ms=60_000, no_output_ms=0, setup_ms=1000, grace_ms=500, cleanup_ms=500, output_max_bytes=1000)

Kind = TypeVar("Kind", bound=launch.FromLauncher)


class Rig:
    """The scheduler's side: `instance` and `epoch` are the current ones. Heartbeats are answered while it listens."""

    def __init__(self, scratch: Instance) -> None:
        self.scratch = scratch
        self.instance, self.epoch = "one", 0
        self.config = CONFIG
        self.heartbeats: list[launch.Heartbeat] = []
        self.inbox: list[launch.FromLauncher] = []
        self.sent_by: bytes = b""
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        scratch.paths.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._router: zmq.Socket[bytes] | None = None
        self.listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.go_deaf()
        self._context.term()

    # the scheduler's life

    def listen(self) -> None:
        self._router = sockets.router(self._context, str(self.scratch.paths.launch), launch.MESSAGE_MAX_BYTES)

    def go_deaf(self) -> None:
        """As a scheduler that ends."""
        if self._router is not None:
            self._router.close(0)
            self._router = None

    # the launcher's life

    def start(self, environ: dict[str, str] | None = None, arm: dict[str, str] | None = None) -> Daemon:
        daemon = self.start_unready(environ, arm)
        daemon.wait_ready()
        return daemon

    def start_unready(self, environ: dict[str, str] | None = None, arm: dict[str, str] | None = None) -> Daemon:
        scratch = self.scratch
        armed = failpoints.environment(arm, scratch.hits) if arm else {}
        prefix = scratch.disk.prefix() if scratch.disk else []
        log = scratch.root / f"{len(scratch.daemons):02}-launcher.log"
        command = [*prefix, sys.executable, str(PROGRAM)]
        daemon = Daemon(command, scratch.environ | (environ or {}) | armed, log)
        scratch.daemons.append(daemon)
        return daemon

    def reconciled(self, active: list[str] | None = None) -> launch.Inventory:
        """Welcomes the launcher that registers into a new epoch and reconciles it."""
        self.forget(launch.Register)
        self.expect(launch.Register)
        return self.welcome(active or [])

    def welcome(self, active: list[str]) -> launch.Inventory:
        self.epoch += 1
        self.send(launch.Welcome(self.instance, self.epoch, self.config, active))
        inventory = self.expect(launch.Inventory)
        while inventory.epoch != self.epoch or inventory.instance != self.instance:
            inventory = self.expect(launch.Inventory)
        self.send(launch.Reconciled(self.instance, self.epoch))
        return inventory

    # messages

    def send(self, message: launch.ToLauncher) -> None:
        assert self._router is not None
        self._router.send_multipart([self.sent_by, launch.encode(message)])

    def send_bytes(self, data: bytes) -> None:
        assert self._router is not None
        self._router.send_multipart([self.sent_by, data])

    def order(self, run: str, do: str = "ok", **fields: object) -> None:
        """Launches `run` in the current epoch; `fields` are of the script or of the Launch itself."""
        own = {name: fields.pop(name) for name in list(fields) if name in launch.Launch.__struct_fields__}
        script = msgspec.json.encode({"do": do} | fields)
        message = launch.Launch(self.instance, self.epoch, run, "slot", script, LIMITS, "secret", "/bin:/usr/bin")
        self.send(msgspec.structs.replace(message, **own))

    def expect(self, kind: type[Kind], run: str | None = None, deadline_s: float = 10) -> Kind:
        """The next message of this kind (and run), taken out of what arrived."""
        end = time.monotonic() + deadline_s
        while True:
            for message in self.inbox:
                if isinstance(message, kind) and run in (None, getattr(message, "run", None)):
                    self.inbox.remove(message)
                    return message
            if time.monotonic() >= end:
                raise Overdue(f"no {kind.__name__} of {run} within {deadline_s} s; there is {self.inbox}")
            self.pump(100)

    def forget(self, kind: type[launch.FromLauncher]) -> None:
        """Drops what arrived of this kind until now."""
        self.pump(0)
        self.inbox = [message for message in self.inbox if not isinstance(message, kind)]

    def pump(self, timeout_ms: int) -> None:
        """Takes what arrives within the time."""
        assert self._router is not None
        if not self._router.poll(timeout_ms):
            return
        for sender, data in sockets.drain(self._router, 10_000):
            self.sent_by = sender
            message = launch.decode_from_launcher(data)
            if isinstance(message, launch.Heartbeat):
                self.heartbeats.append(message)
                if message.epoch == self.epoch:
                    with contextlib.suppress(zmq.ZMQError):  # the launcher is gone
                        self.send(launch.Beat(self.instance, self.epoch))
            else:
                self.inbox.append(message)

    def wait_heartbeat(self, deadline_s: float = 10) -> launch.Heartbeat:
        """One that was sent after this call."""
        self.pump(0)
        self.heartbeats.clear()
        end = time.monotonic() + deadline_s
        while not self.heartbeats:
            assert time.monotonic() < end, "no heartbeat"
            self.pump(100)
        return self.heartbeats[-1]

    # run directories

    def directory(self, run: str) -> Path:
        path = self.scratch.paths.runs / run_key(run)
        return self.scratch.disk.outside(path) if self.scratch.disk else path

    def started(self, run: str, do: str = "hang", **fields: object) -> int:
        """Launches a run and returns the pid of the executor that has it."""
        self.order(run, do, **fields)
        return self.expect(launch.Accepted, run).executor_pid

    def child_of(self, run: str) -> int:
        path = self.directory(run) / "child"
        wait_until(lambda: path.exists() and path.read_text() != "", f"the task of {run} has started its child")
        return int(path.read_text())


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)


def read_outcome(data: bytes | None) -> outcome.Outcome:
    assert data is not None
    return outcome.decode(data)


def write_outcome(directory: Path, run: str) -> None:
    saved = outcome.Outcome(run, outcome.Status.OK, None, "", 1, 2, 1)
    (directory / rundir.OUTCOME).write_bytes(rundir.seal(outcome.encode(saved)))
