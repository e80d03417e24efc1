"""Answers on their way to clients that may be slow: bounded per peer, never dropped without a word."""

from collections import deque

import zmq

from cronward.protocol import log
from cronward.scheduler.effects import Address

QUEUE_MAX = 64
"""Answers that wait for one peer, beyond what ZeroMQ holds for it."""


class Outbox:
    """Sends on one ROUTER. What a peer cannot take now waits; a peer with a full queue has to read first."""

    def __init__(self, socket: zmq.Socket[bytes], name: str) -> None:
        self._socket = socket
        self._name = name
        self._waiting: dict[bytes, deque[list[bytes]]] = {}

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def is_full(self, address: Address) -> bool:
        """Whether the peer may not ask more before it has read."""
        return len(self._waiting.get(address[0], ())) >= QUEUE_MAX

    def send(self, address: Address, body: bytes) -> None:
        frames = [*address, body]
        queue = self._waiting.get(address[0])
        if queue is not None:
            queue.append(frames)
        elif not self._try(frames):
            self._waiting[address[0]] = deque([frames])

    def flush(self) -> None:
        """Tries again what waits."""
        for peer, queue in list(self._waiting.items()):
            while queue and self._try(queue[0]):
                queue.popleft()
            if not queue:
                del self._waiting[peer]

    def _try(self, frames: list[bytes]) -> bool:
        """True if the message is sent or its peer is gone."""
        try:
            self._socket.send_multipart(frames, zmq.DONTWAIT)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            log.info("peer.gone", "an answer has nobody to go to any more", socket=self._name)
        return True
