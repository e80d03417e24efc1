"""The scheduler's sockets: modes, batches, and binding again when a file was taken away."""

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from cronward.protocol import sockets
from cronward.protocol.paths import Paths
from cronward.scheduler.ports import TAKE_MAX, Ports
from cronward.scheduler.requests import Arrived


@pytest.fixture
def wakeup() -> Iterator[socket.socket]:
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    yield reader
    reader.close()
    writer.close()


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path / "s", tmp_path / "r")
    made.runtime.mkdir(mode=0o700)
    return made


@pytest.fixture
def ports(paths: Paths, wakeup: socket.socket) -> Iterator[Ports]:
    made = Ports(paths, "no-such-group", wakeup.fileno())
    yield made
    made.close()


def exchange(ports: Ports, path: Path) -> None:
    """A request goes in and its answer comes out, over the file as it is now."""
    with zmq.Context() as context:
        client = sockets.dealer(context, str(path), 1 << 20)
        assert client.poll(5000, zmq.POLLOUT)
        client.send(b"ask")
        arrived: list[Arrived] = []
        while not arrived:
            ports.wait(1000)
            arrived = ports.take().requests
        ports.answer(arrived[0].socket, arrived[0].address, b"answer")
        assert client.poll(5000)
        assert client.recv() == b"answer"
        client.close(0)


def test_only_the_owner_speaks_to_it(ports: Ports, paths: Paths) -> None:
    for path in (paths.run, paths.launch, paths.control, paths.query, paths.events):
        assert path.is_socket()
        assert path.stat().st_mode & 0o777 == 0o600
    assert paths.status.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to a group")
def test_the_status_group_reads_status_and_nothing_else(paths: Paths, wakeup: socket.socket) -> None:
    ports = Ports(paths, "nogroup", wakeup.fileno())
    modes = {path.name: path.stat().st_mode & 0o777 for path in (paths.runtime, *paths.runtime.rglob("*"))}
    assert modes == {
        "r": 0o710,
        "status": 0o750,
        "query": 0o660,
        "events": 0o660,
        "control": 0o600,
        "launch": 0o600,
        "run": 0o600,
    }
    ports.close()


def test_who_asks_is_the_kernels_word(ports: Ports, paths: Paths) -> None:
    with zmq.Context() as context:
        client = sockets.dealer(context, str(paths.control), 1 << 20)
        assert client.poll(5000, zmq.POLLOUT)
        client.send(b"x")
        ports.wait(5000)
        (arrived,) = ports.take().requests
        assert (arrived.peer_address or "").endswith(f"{os.getuid()}:{os.getgid()}:{os.getpid()}")
        client.close(0)


def test_a_batch_is_bounded(ports: Ports, paths: Paths) -> None:
    count = TAKE_MAX + 50
    with zmq.Context() as context:
        client = sockets.dealer(context, str(paths.launch), 1 << 20)
        assert client.poll(5000, zmq.POLLOUT)
        for number in range(count):
            client.send(b"%d" % number)
        taken: list[bytes] = []
        sizes = []
        while len(taken) < count:
            ports.wait(5000)
            batch = ports.take().launch
            sizes.append(len(batch))
            taken += [body for _, body in batch]
        assert max(sizes) <= TAKE_MAX
        assert taken == [b"%d" % number for number in range(count)]
        client.close(0)


@pytest.mark.parametrize("loss", ["one file", "all files", "directory", "replaced"])
def test_lost_socket_files_are_bound_again(ports: Ports, paths: Paths, loss: str) -> None:
    match loss:
        case "one file":
            paths.control.unlink()
        case "all files":
            for path in (paths.run, paths.launch, paths.control, paths.query, paths.events):
                path.unlink()
        case "directory":
            shutil.rmtree(paths.runtime)
        case "replaced":
            paths.control.unlink()
            other = socket.socket(socket.AF_UNIX)
            other.bind(str(paths.control))
            other.close()
    ports.ensure_own()
    for path in (paths.run, paths.launch, paths.control, paths.query, paths.events):
        assert path.is_socket()
    exchange(ports, paths.control)
    exchange(ports, paths.query)


def test_untouched_files_are_left_alone(ports: Ports, paths: Paths) -> None:
    before = {path.name: path.stat().st_ino for path in paths.runtime.rglob("*")}
    ports.ensure_own()
    assert {path.name: path.stat().st_ino for path in paths.runtime.rglob("*")} == before
