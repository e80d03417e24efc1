"""Answers on their way to clients that may be slow: bounded per peer, never dropped without a word."""

from collections import deque

import zmq

from cronward.protocol import log
from cronward.scheduler.effects import Address

QUEUE_MAX = 1024
QUEUE_MAX_BYTES = 8 * 1024 * 1024
"""Answers that wait for one peer, beyond what ZeroMQ holds for it: one of these makes it full."""

REFUSALS_MAX = 16_384
"""A peer that asks on although it is full is told so this often until it reads; what it asks after that is logged."""


class _Queue:
    """What waits for one peer."""

    def __init__(self) -> None:
        self.messages: deque[list[bytes]] = deque()
        self.bytes = 0
        self.overrun = False

    def append(self, frames: list[bytes]) -> None:
        self.messages.append(frames)
        self.bytes += len(frames[-1])

    def popleft(self) -> None:
        self.bytes -= len(self.messages.popleft()[-1])


class Outbox:
    """Sends on one ROUTER. What a peer cannot take now waits; a peer with a full queue has to read first."""

    def __init__(self, socket: zmq.Socket[bytes], name: str) -> None:
        self._socket = socket
        self._name = name
        self._waiting: dict[bytes, _Queue] = {}

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def is_full(self, address: Address) -> bool:
        """Whether the peer may not ask more before it has read."""
        queue = self._waiting.get(address[0])
        return queue is not None and (len(queue.messages) >= QUEUE_MAX or queue.bytes >= QUEUE_MAX_BYTES)

    def send(self, address: Address, body: bytes) -> None:
        frames = [*address, body]
        queue = self._waiting.get(address[0])
        if queue is None:
            if self._try(frames):
                return
            queue = self._waiting[address[0]] = _Queue()
        if len(queue.messages) < REFUSALS_MAX:
            queue.append(frames)
        elif not queue.overrun:
            queue.overrun = True
            log.warning("peer.overrun", "a client asks on without reading; it is not answered now", socket=self._name)

    def flush(self) -> None:
        """Tries again what waits."""
        for peer, queue in list(self._waiting.items()):
            while queue.messages and self._try(queue.messages[0]):
                queue.popleft()
            if not queue.messages:
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
