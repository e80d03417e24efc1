"""The launcher's end of the `launch` socket."""

from collections import deque
from collections.abc import Iterator

import msgspec
import zmq

from cronward.protocol import launch, log, sockets

ANSWERS_MAX = 4096
"""Far more than launches can be unanswered at once; a bound all the same."""

EVENTS_PER_TURN = 16


class Link:
    """Sends and receives messages of `protocol.launch`. Nothing is kept for a scheduler that is not there, except the
    answers to launches while the peer is slow."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._socket = socket
        self._answers: deque[launch.Accepted | launch.Refused] = deque(maxlen=ANSWERS_MAX)

    def connected(self) -> bool:
        """Whether a scheduler, perhaps a new one, was reached since the last call."""
        return sum(1 for _ in sockets.drain(self.monitor, EVENTS_PER_TURN)) > 0

    def send(self, message: launch.FromLauncher) -> bool:
        """False if there is no peer or it is full: the caller repeats it later, or need not."""
        try:
            self._socket.send(launch.encode(message), zmq.DONTWAIT)
        except zmq.Again:
            return False
        return True

    def answer(self, message: launch.Accepted | launch.Refused) -> None:
        """Sends the answer to a launch now or with a later `flush`."""
        self._answers.append(message)
        self.flush()

    def flush(self) -> None:
        while self._answers and self.send(self._answers[0]):
            self._answers.popleft()

    def drop_answers(self) -> None:
        """The epoch of these answers is over; the inventory of the next one stands for them."""
        self._answers.clear()

    def receive(self, limit: int) -> Iterator[launch.ToLauncher]:
        """Up to `limit` messages that are there now. What cannot be read is logged and dropped."""
        for frames in sockets.drain(self._socket, limit):
            try:
                yield launch.decode_to_launcher(frames[-1])
            except msgspec.DecodeError as error:
                log.warning("launcher.bad_message", f"a message of the scheduler cannot be read: {error}")
