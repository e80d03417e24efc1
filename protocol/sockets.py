"""ZeroMQ sockets with the options that make them safe: bounded, no silent drops, nothing kept for the absent."""

from collections.abc import Iterator

import zmq

HIGH_WATER_MARK = 1000
EVENT_MAX_BYTES = 4 * 1024 * 1024
"""An event can hold a whole job."""


def router(
    context: zmq.Context[zmq.Socket[bytes]], path: str, max_bytes: int, high_water_mark: int = HIGH_WATER_MARK
) -> zmq.Socket[bytes]:
    """A bound ROUTER that keeps up to `high_water_mark` messages per peer and direction.

    A send to a peer that is full raises zmq.Again, to one that is gone zmq.ZMQError(EHOSTUNREACH). The caller holds the
    runtime directory's lock: binding an ipc path takes it from whoever has it.
    """
    socket = context.socket(zmq.ROUTER)
    _bound(socket, max_bytes, high_water_mark)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.bind(f"ipc://{path}")
    return socket


def publisher(context: zmq.Context[zmq.Socket[bytes]], path: str) -> zmq.Socket[bytes]:
    """A bound PUB: the one socket that may drop; its messages are numbered."""
    socket = context.socket(zmq.PUB)
    _bound(socket, 64 * 1024)
    socket.bind(f"ipc://{path}")
    return socket


def dealer(context: zmq.Context[zmq.Socket[bytes]], path: str, max_bytes: int) -> zmq.Socket[bytes]:
    """A DEALER that queues nothing for an absent ROUTER: a send without a peer raises zmq.Again."""
    socket = context.socket(zmq.DEALER)
    _bound(socket, max_bytes)
    socket.setsockopt(zmq.IMMEDIATE, 1)
    socket.setsockopt(zmq.RECONNECT_IVL, 20)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
    socket.connect(f"ipc://{path}")
    return socket


def subscriber(context: zmq.Context[zmq.Socket[bytes]], path: str) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.SUB)
    _bound(socket, EVENT_MAX_BYTES)
    socket.setsockopt(zmq.RECONNECT_IVL, 50)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(f"ipc://{path}")
    return socket


def drain(socket: zmq.Socket[bytes], limit: int) -> Iterator[list[bytes]]:
    """Up to `limit` messages that are there now."""
    for _ in range(limit):
        try:
            yield socket.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return


def _bound(socket: zmq.Socket[bytes], max_bytes: int, high_water_mark: int = HIGH_WATER_MARK) -> None:
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, high_water_mark)
    socket.setsockopt(zmq.RCVHWM, high_water_mark)
    socket.setsockopt(zmq.MAXMSGSIZE, max_bytes)
