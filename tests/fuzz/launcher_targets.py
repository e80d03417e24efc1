"""The launcher: what the scheduler sends to it, and what its executors say on their pairs."""

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import msgspec
import zmq

from cronward.launcher.control_groups import ControlGroups
from cronward.launcher.exits import Exits
from cronward.launcher.forgetting import Forgetting
from cronward.launcher.guard import Guard
from cronward.launcher.known_runs import KnownRuns
from cronward.launcher.launches import Launches
from cronward.launcher.link import Link
from cronward.launcher.live import LiveRun
from cronward.launcher.orders import Orders
from cronward.launcher.pool import Pool
from cronward.launcher.readiness import Readiness
from cronward.launcher.run_directories import RunDirectories
from cronward.launcher.session import Session
from cronward.launcher.settlement import Settlements
from cronward.launcher.spawner import Spawned
from cronward.launcher.timers import Timers
from cronward.launcher.walk import Walk
from cronward.launcher.watch import Watch
from cronward.protocol import launch, pair, sockets
from cronward.protocol.identity import ProcessIdentity, boot_id, own_identity, start_ticks
from cronward.protocol.launch import GatewayState, LauncherConfig
from cronward.protocol.rundir import Limits
from tests.fuzz.mutation import Mutator
from tests.support.scheduler_bench import FakeClock

CONFIG = LauncherConfig(1, 2, 4, 100)
LIMITS = Limits(1000, 0, 1000, 100, 100, 1000)
RUNS = 40
"""Names of runs that orders speak of; small, so that they meet each other."""


class Pairs:
    """A spawner that keeps the executors' ends; each is ready at once. A sleeping process stands for each of them."""

    def __init__(self) -> None:
        self.ends: dict[socket.socket, int] = {}
        """With the pid of each."""
        self.ended: list[tuple[int, int]] = []
        """Pid and status of those that are gone, until somebody takes them."""

    def spawn(self) -> Spawned:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        theirs.setblocking(False)
        pid = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
        theirs.send(pair.encode(pair.Ready(ProcessIdentity(pid, start_ticks(pid) or 0, boot_id()))))
        self.ends[theirs] = pid
        return Spawned(ours, None)

    def reset(self) -> None:
        """There is nothing to start again."""

    def play(self) -> None:
        """Each executor gives up what it was handed, and goes when its pair is closed."""
        for end in list(self.ends):
            try:
                data, fds, _, _ = socket.recv_fds(end, pair.PACKET_MAX_BYTES, 1)
            except BlockingIOError:
                continue
            for fd in fds:
                os.close(fd)
            if not data:
                self.drop(end)
            elif isinstance(order := pair.decode_to_executor(data), pair.HandOver):
                end.send(pair.encode(pair.Free(order.run, len(order.run) % 2 == 0, fit=True, rss_kib=1)))

    def drop(self, end: socket.socket) -> None:
        end.close()
        pid = self.ends.pop(end)
        os.kill(pid, signal.SIGKILL)
        self.ended.append(os.waitpid(pid, 0))


class _Launcher:
    """Every part of a launcher but its process: no signals, no gateway, executors that the target plays."""

    def __init__(self, root: Path) -> None:
        self.clock = FakeClock()
        self.spawner = Pairs()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.link = Link(sockets.dealer(self._context, str(root / "launch"), launch.MESSAGE_MAX_BYTES))
        self.readiness = Readiness(self.link.monitor)
        self.exits = Exits(self.link.send)
        watch = Watch(self.readiness, lambda live, how, verdict: settlements.begin(live.run, how, verdict))
        self.pool = Pool(self.spawner, self.readiness, self.clock, self._freed, watch.add)
        self._watch = watch
        (root / "runs").mkdir()
        directories = RunDirectories(str(root / "runs"))
        groups = ControlGroups(None)
        settlements = Settlements(groups, self.exits.add, lambda: 100)
        self.launches = Launches(directories, self.pool, self.clock, self.link.answer)
        known = KnownRuns(directories, self.launches, self.pool, watch, settlements, self.exits, lambda: 100)
        forgetting = Forgetting(directories, known.is_known)
        self.session = Session()
        self.orders = Orders(
            self.session,
            self.link,
            self.clock,
            known,
            self.launches,
            self.pool,
            watch,
            self.exits,
            forgetting,
            lambda: GatewayState.NONE,
            lambda config: self.pool.configure(config.ready, min(config.executors_max, 8)),
        )
        self._timers = Timers(
            self.clock,
            self.pool.tend,
            watch.try_all,
            settlements.step,
            Guard(self.pool, watch, self.exits.add).step,
            self.launches.expire,
            self.launches.probe,
            forgetting.delete_some,
            Walk(directories.root, forgetting, groups, known.is_known, watch.add).step,
        )
        self.pool.configure(CONFIG.ready, CONFIG.executors_max)

    def turn(self) -> None:
        """As Launcher's own, without waiting."""
        self.clock.advance(20)
        self.readiness.wait(0)
        self.session.due(self.clock.mono_ms())
        self.launches.start()
        self.pool.grow(len(self.launches))
        self._timers.run()
        self.exits.resend(self.clock.mono_ms())
        self.link.flush()
        self.spawner.play()
        while self.spawner.ended:
            self.pool.reap(*self.spawner.ended.pop())

    def close(self) -> None:
        for end in list(self.spawner.ends):
            self.spawner.drop(end)
        self.readiness.wait(0)
        self._context.destroy(0)

    def _freed(self, live: LiveRun, free: pair.Free) -> None:
        if not free.acknowledged:
            self._watch.add(live, "given up")


class _Target:
    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="cw-fuzz-"))
        self._launcher: _Launcher | None = None

    @property
    def launcher(self) -> _Launcher:
        assert self._launcher is not None
        return self._launcher

    def renew(self) -> None:
        self._close_launcher()
        root = Path(tempfile.mkdtemp(dir=self._root))
        self._launcher = _Launcher(root)
        for _ in range(3):
            self._launcher.turn()

    def close(self) -> None:
        self._close_launcher()
        shutil.rmtree(self._root)

    def _close_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None
            for path in self._root.iterdir():
                shutil.rmtree(path)


class OrdersToLauncher(_Target):
    """`launch` as a launcher hears it: nothing raises, and no more is kept than the protocol allows."""

    def make(self, mutator: Mutator) -> bytes:
        run = f"run-{mutator.chance.randrange(RUNS)}"
        return mutator.message(launch.encode(mutator.chance.choice(self._messages(run))))

    def feed(self, data: bytes) -> None:
        try:
            message = launch.decode_to_launcher(data)
        except msgspec.DecodeError:
            return
        self.launcher.orders.handle(message)
        self.launcher.turn()

    def _messages(self, run: str) -> list[launch.ToLauncher]:
        session = self.launcher.session
        instance, epoch = session.instance or "one", min(max(1, session.epoch), 2**62)
        order = launch.Launch(instance, epoch, run, "scheduled", b"{}", LIMITS, "secret", "/bin")
        return [
            launch.Welcome(instance, epoch + 1, CONFIG, [run, "other"]),
            launch.Reconciled(instance, epoch),
            *[order] * 6,
            launch.Ack(run),
            launch.Beat(instance, epoch),
            launch.RegisterAgain(),
            launch.Cancel(run, "why"),
            launch.Left(instance, epoch),
            launch.Forget([run, "other"]),
            launch.Configure(msgspec.structs.replace(CONFIG, version=2)),
        ]


class PairToLauncher(_Target):
    """The launcher's end of a pair: an executor that talks nonsense is replaced, and costs nothing else."""

    def make(self, mutator: Mutator) -> bytes:
        me = own_identity()
        packets: list[pair.FromExecutor] = [
            pair.Ready(me),
            pair.Ready(ProcessIdentity(me.pid, me.start_ticks, "another boot")),
            pair.Free("run", acknowledged=True, fit=True, rss_kib=1),
            pair.Unfit("terminated"),
        ]
        data = msgspec.msgpack.encode(
            mutator.value(msgspec.msgpack.decode(pair.encode(mutator.chance.choice(packets))))
        )
        return (mutator.data(data) if mutator.chance.random() < 0.3 else data)[: 2 * pair.PACKET_MAX_BYTES]

    def feed(self, data: bytes) -> None:
        spawner = self.launcher.spawner
        list(spawner.ends)[len(data) % len(spawner.ends)].send(data)
        self.launcher.turn()
        while not spawner.ends:
            self.launcher.turn()
