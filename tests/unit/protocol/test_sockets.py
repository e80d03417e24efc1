"""ZeroMQ options: a ROUTER whose peer does not read says so, and never drops."""

import tempfile
from collections.abc import Iterator

import pytest
import zmq

from cronward.protocol import sockets
from tests.support.waiting import wait_until

MANY = 20_000


class Wire:
    """One ipc path and the sockets at it, closed together."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._context = zmq.Context[zmq.Socket[bytes]]()
        self._open: list[zmq.Socket[bytes]] = []

    def router(self, max_bytes: int = 1024) -> zmq.Socket[bytes]:
        return self._keep(sockets.router(self._context, self._path, max_bytes))

    def dealer(self, max_bytes: int = 1024) -> zmq.Socket[bytes]:
        return self._keep(sockets.dealer(self._context, self._path, max_bytes))

    def publisher(self) -> zmq.Socket[bytes]:
        return self._keep(sockets.publisher(self._context, self._path))

    def subscriber(self) -> zmq.Socket[bytes]:
        return self._keep(sockets.subscriber(self._context, self._path))

    def close(self) -> None:
        for socket in self._open:
            socket.close()
        self._context.term()

    def _keep(self, socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
        self._open.append(socket)
        return socket


@pytest.fixture
def wire() -> Iterator[Wire]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cw-") as directory:
        made = Wire(f"{directory}/s")
        yield made
        made.close()


def send_until_full(router: zmq.Socket[bytes], address: bytes) -> int:
    """Sends numbered messages until the socket refuses one; how many it took."""
    for number in range(MANY):
        try:
            router.send_multipart([address, b"%d" % number], zmq.DONTWAIT)
        except zmq.Again:
            return number
    return MANY


def test_a_stalled_peer_is_noticed_and_nothing_that_was_taken_is_lost(wire: Wire) -> None:
    router = wire.router()
    dealer = wire.dealer()
    dealer.send(b"hello")
    address, _ = router.recv_multipart()
    taken = send_until_full(router, address)
    assert 0 < taken < MANY
    received: list[bytes] = []
    while len(received) < taken:
        assert dealer.poll(5000), f"{len(received)} of {taken} arrived"
        received.append(dealer.recv())
    assert received == [b"%d" % number for number in range(taken)]


def test_a_peer_that_is_gone_raises(wire: Wire) -> None:
    router = wire.router()
    with pytest.raises(zmq.ZMQError) as raised:
        router.send_multipart([b"nobody", b"x"], zmq.DONTWAIT)
    assert raised.value.errno == zmq.EHOSTUNREACH


def test_a_dealer_keeps_nothing_for_an_absent_router(wire: Wire) -> None:
    dealer = wire.dealer()
    with pytest.raises(zmq.Again):
        dealer.send(b"x", zmq.DONTWAIT)
    router = wire.router()
    dealer.poll(5000, zmq.POLLOUT)
    dealer.send(b"y", zmq.DONTWAIT)
    assert router.poll(5000)
    assert router.recv_multipart()[1] == b"y"


def test_an_oversized_message_costs_its_sender_only(wire: Wire) -> None:
    router = wire.router(100)
    large = wire.dealer(10_000)
    good = wire.dealer(10_000)
    large.send(b"x" * 101)
    good.send(b"good")
    assert router.poll(5000)
    assert router.recv_multipart()[1] == b"good"
    assert not list(sockets.drain(router, 10))


def test_drain_takes_at_most_its_limit(wire: Wire) -> None:
    router = wire.router()
    dealer = wire.dealer()
    for number in range(5):
        dealer.send(b"%d" % number)
    seen: list[bytes] = []

    def all_came() -> bool:
        taken = [message for _, message in sockets.drain(router, 2)]
        assert len(taken) <= 2
        seen.extend(taken)
        return len(seen) == 5

    wait_until(all_came, "all five came")
    assert seen == [b"0", b"1", b"2", b"3", b"4"]


def test_a_subscriber_hears_the_publisher(wire: Wire) -> None:
    publisher = wire.publisher()
    subscriber = wire.subscriber()

    def heard() -> bool:
        publisher.send(b"event")
        return bool(subscriber.poll(10))

    wait_until(heard, "an event arrives")
    assert subscriber.recv() == b"event"
