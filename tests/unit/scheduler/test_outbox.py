"""Answers to slow peers: in order, bounded, and never lost without a word."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from cronward.protocol import sockets
from cronward.scheduler.outbox import QUEUE_MAX, QUEUE_MAX_BYTES, REFUSALS_MAX, Outbox

MARK = 4


class Peer:
    """A DEALER that has said hello to a ROUTER with small queues."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], path: Path, router: zmq.Socket[bytes]) -> None:
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.RCVHWM, 1)
        self.socket.setsockopt(zmq.RCVBUF, 4096)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(f"ipc://{path}")
        self.socket.send(b"hello")
        self.address = router.recv_multipart()[:-1]

    def read(self, count: int) -> list[bytes]:
        found = []
        for _ in range(count):
            assert self.socket.poll(5000)
            found.append(self.socket.recv())
        return found


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as made:
        yield made


@pytest.fixture
def router(context: zmq.Context[zmq.Socket[bytes]], tmp_path: Path) -> Iterator[zmq.Socket[bytes]]:
    socket = sockets.router(context, str(tmp_path / "r"), 1 << 20, MARK)
    yield socket
    socket.close(0)


@pytest.fixture
def peer(context: zmq.Context[zmq.Socket[bytes]], router: zmq.Socket[bytes], tmp_path: Path) -> Iterator[Peer]:
    made = Peer(context, tmp_path / "r", router)
    yield made
    made.socket.close(0)


BODY = b"x" * 20_000


def fill(outbox: Outbox, peer: Peer, waiting: int) -> int:
    """Sends until that many answers wait; how many were sent in all."""
    sent = 0
    while not outbox.is_waiting:
        outbox.send(peer.address, b"%d " % sent + BODY)
        sent += 1
    for _ in range(waiting - 1):
        outbox.send(peer.address, b"%d " % sent + BODY)
        sent += 1
    return sent


def test_what_waits_keeps_its_order_and_arrives(router: zmq.Socket[bytes], peer: Peer) -> None:
    outbox = Outbox(router, "control")
    sent = fill(outbox, peer, 50)
    assert not outbox.is_full(peer.address)
    got: list[bytes] = []
    while len(got) < sent:
        if peer.socket.poll(10):
            got.append(peer.socket.recv())
        outbox.flush()
    assert [int(body.split()[0]) for body in got] == list(range(sent))
    assert not outbox.is_waiting


def test_a_peer_is_full_by_number_or_by_size(router: zmq.Socket[bytes], peer: Peer) -> None:
    outbox = Outbox(router, "control")
    fill(outbox, peer, QUEUE_MAX_BYTES // len(BODY) - 1)
    assert not outbox.is_full(peer.address)
    for _ in range(2):
        outbox.send(peer.address, BODY)
    assert outbox.is_full(peer.address)


def test_a_full_peer_hinders_nobody_and_costs_bounded_memory(
    context: zmq.Context[zmq.Socket[bytes]],
    router: zmq.Socket[bytes],
    peer: Peer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    outbox = Outbox(router, "control")
    sent = fill(outbox, peer, 1)
    for number in range(sent, sent + REFUSALS_MAX + 100):
        outbox.send(peer.address, b"%d refused" % number)
    assert outbox.is_full(peer.address)
    assert REFUSALS_MAX > QUEUE_MAX
    told = [getattr(record, "event", "") for record in caplog.records]
    assert told == ["peer.overrun"]
    other = Peer(context, tmp_path / "r", router)
    assert not outbox.is_full(other.address)
    outbox.send(other.address, b"at once")
    assert other.read(1) == [b"at once"]
    other.socket.close(0)


def test_answers_to_a_peer_that_is_gone_are_dropped(router: zmq.Socket[bytes], peer: Peer) -> None:
    outbox = Outbox(router, "control")
    fill(outbox, peer, 5)
    peer.socket.close(0)
    for _ in range(500):
        if not outbox.is_waiting:
            break
        router.poll(10)
        outbox.flush()
    assert not outbox.is_waiting
    outbox.send(peer.address, b"to nobody")
    assert not outbox.is_waiting
