"""What every way of starting executors has to do, with the real executor."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cronward.launcher.pidfds import open_pidfd
from cronward.launcher.spawner import ExecSpawner, Spawner, ZygoteSpawner
from cronward.protocol import pair
from tests.support import processes
from tests.support.waiting import wait_until

MAKERS: list[Callable[[str], Spawner]] = [ExecSpawner, ZygoteSpawner]


@pytest.fixture(params=MAKERS, ids=["exec", "zygote"])
def spawner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Spawner]:
    spawner: Spawner = request.param(str(tmp_path / "run"))
    yield spawner
    spawner.reset()
    wait_until(lambda: not _children(), "what was started has ended")


def _children() -> bool:
    """Reaps; whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def alive(pid: int) -> bool:
    return processes.state(pid) not in ("", "Z")


def ready(end: socket.socket) -> pair.Ready:
    end.settimeout(20)
    message = pair.decode_from_executor(end.recv(pair.PACKET_MAX_BYTES))
    assert isinstance(message, pair.Ready)
    return message


def test_it_says_who_it_is_and_ends_with_its_pair(spawner: Spawner) -> None:
    spawned = spawner.spawn()
    executor = ready(spawned.end).executor
    assert spawned.pid in (None, executor.pid)
    pidfd = open_pidfd(executor)
    assert pidfd is not None
    os.close(pidfd)
    assert os.getsid(executor.pid) == executor.pid
    spawned.end.close()
    wait_until(lambda: not alive(executor.pid), "the executor has ended")


def test_each_lives_by_itself(spawner: Spawner) -> None:
    """Nobody else holds an end of its pair: the others' sockets are open while it ends."""
    spawned = [spawner.spawn() for _ in range(4)]
    pids = [ready(one.end).executor.pid for one in spawned]
    assert len(set(pids)) == 4
    os.kill(pids[0], signal.SIGKILL)
    assert spawned[0].end.recv(10) == b""
    spawned[1].end.close()
    wait_until(lambda: not alive(pids[1]), "the second has ended")
    assert alive(pids[2])
    assert alive(pids[3])
    for one in spawned:
        one.end.close()


def test_after_a_reset_the_next_one_comes_all_the_same(spawner: Spawner) -> None:
    first = spawner.spawn()
    pid = ready(first.end).executor.pid
    spawner.reset()
    second = spawner.spawn()
    ready(second.end)
    assert alive(pid)
    first.end.close()
    second.end.close()


def test_a_killed_zygote_is_replaced_and_its_executors_stay(tmp_path: Path) -> None:
    spawner = ZygoteSpawner(str(tmp_path / "run"))
    first = spawner.spawn()
    pid = ready(first.end).executor.pid
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    zygotes = [int(child) for child in children if b"zygote" in Path(f"/proc/{child}/cmdline").read_bytes()]
    assert len(zygotes) == 1
    os.kill(zygotes[0], signal.SIGKILL)
    os.waitpid(zygotes[0], 0)
    second = spawner.spawn()
    ready(second.end)
    assert alive(pid)
    for one in (first, second):
        one.end.close()
    spawner.reset()
    wait_until(lambda: not _children(), "what was started has ended")
