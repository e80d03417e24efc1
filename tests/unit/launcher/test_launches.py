"""Hand-overs through real pairs; the test plays the executors."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from cronward.launcher.judgement import read_intent
from cronward.launcher.launches import Launches
from cronward.launcher.live import LiveRun
from cronward.launcher.pool import Pool
from cronward.launcher.readiness import Readiness
from cronward.launcher.run_directories import RunDirectories
from cronward.launcher.spawner import Spawned
from cronward.protocol import pair, rundir
from cronward.protocol.clock import SystemClock
from cronward.protocol.identity import ProcessIdentity, boot_id, own_identity, start_ticks
from cronward.protocol.launch import Accepted, Launch, Refused, RefuseReason
from cronward.protocol.rundir import Limits

PARENT = ProcessIdentity(os.getppid(), start_ticks(os.getppid()) or 0, boot_id())


class InTest:
    """Spawns nothing: the other ends are kept for the test, which is ready at once."""

    def __init__(self) -> None:
        self.ends: list[socket.socket] = []

    def spawn(self) -> Spawned:
        """The second claims to be the parent process, so that the two can be told apart."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        theirs.send(pair.encode(pair.Ready(PARENT if len(self.ends) == 1 else own_identity())))
        theirs.setblocking(False)
        self.ends.append(theirs)
        return Spawned(ours, None)

    def reset(self) -> None:
        pass


class Bench:
    """A pool, its launches, and what they answered."""

    def __init__(self, root: Path, ready: int) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.idle = self.context.socket(zmq.PULL)
        self.spawner = InTest()
        self.answers: list[Accepted | Refused] = []
        self.freed: list[LiveRun] = []
        self.lost: list[LiveRun] = []
        self.readiness = Readiness(self.idle)
        self.directories = RunDirectories(str(root))
        self.pool = Pool(
            self.spawner,
            self.readiness,
            SystemClock(),
            lambda live, free: self.freed.append(live),
            lambda live, how: self.lost.append(live),
        )
        self.launches = Launches(self.directories, self.pool, SystemClock(), self.answers.append)
        self.pool.configure(ready, 8)
        self.pool.grow(0)
        self.readiness.wait(100)

    def close(self) -> None:
        for end in self.spawner.ends:
            end.close()
        self.readiness.wait(100)
        self.idle.close(0)
        self.context.term()

    def received(self, end: socket.socket) -> pair.ToExecutor | None:
        """What lies in the pair; closes the lock that comes with it."""
        try:
            data, fds, _, _ = socket.recv_fds(end, pair.PACKET_MAX_BYTES, 1)
        except BlockingIOError:
            return None
        for fd in fds:
            os.close(fd)
        return pair.decode_to_executor(data) if data else None


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, ready=2)
    yield bench
    bench.close()


def launch(run: str = "run") -> Launch:
    return Launch("one", 1, run, "slot", b"{}", Limits(1, 0, 1, 1, 1, 1), "secret", "/bin")


def test_a_refused_packet_goes_to_another_executor_with_a_new_intent(bench: Bench) -> None:
    bench.spawner.ends[1].close()
    bench.launches.receive(launch())
    bench.launches.start()
    handed = bench.received(bench.spawner.ends[0])
    assert handed == pair.HandOver("run", bench.directories.path("run"), "secret")
    assert bench.answers == [Accepted("run", os.getpid())]
    assert read_intent(bench.directories.path("run")).executor == own_identity()
    assert sorted(os.listdir(bench.directories.path("run"))) == [rundir.INTENT, rundir.LOCK]


def test_without_another_executor_it_waits_with_its_lock_held_and_is_handed_over_once(bench: Bench) -> None:
    for end in bench.spawner.ends:
        end.close()
    bench.launches.receive(launch())
    bench.launches.start()
    assert "run" in bench.launches
    assert bench.answers == []
    bench.pool.grow(len(bench.launches))
    bench.readiness.wait(100)
    bench.launches.start()
    bench.launches.start()
    handed = [bench.received(end) for end in bench.spawner.ends[2:]]
    assert len([packet for packet in handed if packet is not None]) == 1
    assert bench.answers == [Accepted("run", os.getpid())]


def test_a_cancel_of_a_published_launch_removes_its_directory(bench: Bench) -> None:
    for end in bench.spawner.ends:
        end.close()
    bench.launches.receive(launch())
    bench.launches.start()
    assert os.path.exists(bench.directories.path("run"))
    bench.launches.refuse("run", RefuseReason.CANCELLED, "why")
    assert not os.path.exists(bench.directories.path("run"))
    assert bench.answers == [Refused("run", RefuseReason.CANCELLED, "why")]


def test_an_executor_that_speaks_out_of_turn_is_given_up_but_its_run_is_not(bench: Bench) -> None:
    bench.launches.receive(launch())
    bench.launches.start()
    bench.spawner.ends[1].send(pair.encode(pair.Free("another", True, True, 1)))
    bench.readiness.wait(100)
    assert bench.pool.holder("run") is not None
    now_ms = SystemClock().mono_ms()
    bench.pool.tend(now_ms + 2000)
    assert [live.run for live in bench.lost] == ["run"]
    assert bench.pool.holder("run") is None


def test_unfit_while_a_run_is_on_its_way_retires_after_it(bench: Bench) -> None:
    bench.launches.receive(launch())
    bench.launches.start()
    end = bench.spawner.ends[1]
    end.send(pair.encode(pair.Unfit("SIGTERM")))
    bench.readiness.wait(100)
    assert isinstance(bench.received(end), pair.HandOver)
    end.send(pair.encode(pair.Free("run", True, True, 1)))
    bench.readiness.wait(100)
    assert [live.run for live in bench.freed] == ["run"]
    assert end.recv(10) == b""


def test_executors_that_nobody_needed_for_a_window_are_retired(bench: Bench) -> None:
    now_ms = SystemClock().mono_ms()
    bench.pool.grow(4)
    bench.readiness.wait(100)
    assert bench.pool.state(0, 0).ready == 6
    bench.pool.tend(now_ms)
    bench.pool.tend(now_ms + 29_999)
    assert bench.pool.state(0, 0).ready == 6
    bench.pool.tend(now_ms + 30_001)
    assert bench.pool.state(0, 0).ready == 2
