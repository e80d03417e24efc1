"""Speaking with the scheduler about the one run that is held: greeting, progress, outcome. What matters is sent
again until it is answered, and nothing waits for an answer."""

import enum
from collections.abc import Iterator

import msgspec
import zmq

from cronward.executor.deadlines import Deadlines
from cronward.protocol import failpoints, log
from cronward.protocol.clock import Clock
from cronward.protocol.run import (
    HELLO_INTERVAL_MS,
    FromExecutor,
    Hello,
    Progress,
    Report,
    ToExecutor,
    decode_to_executor,
    encode,
)
from cronward.protocol.sockets import drain

PROGRESS_INTERVAL_MS = 1000
RETRY_MS = 1000
"""After a send that found nobody. A new connection retries at once, so this is only the net below it."""

HELLO_LOST_MS = 30_000
"""An answer that did not come until then is taken for lost, on a connection that never broke."""

_MESSAGES_PER_TURN = 16


class Due(enum.Enum):
    HELLO = enum.auto()
    PROGRESS = enum.auto()


class Reporter:
    """The DEALER on `run`, and the run that is spoken of. Without a run it is silent."""

    def __init__(self, socket: zmq.Socket[bytes], clock: Clock, pid: int) -> None:
        self.socket = socket
        self.monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._clock = clock
        self._pid = pid
        self._deadlines: Deadlines[Due] = Deadlines()
        self._run: str | None = None
        self._secret = ""
        self._progress: Progress | None = None

    def take(self, run: str, secret: str) -> None:
        """Speaks of `run` from now on, and greets at once."""
        self._run, self._secret = run, secret
        self._hello()

    def drop(self) -> None:
        """The run is over and its outcome recorded, or left to the launcher."""
        self._run = None
        self._progress = None
        self._deadlines.clear_all()

    def next_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def tick(self, now_ms: int) -> None:
        """Sends what is due."""
        while (due := self._deadlines.pop_due(now_ms)) is not None:
            match due:
                case Due.HELLO:
                    self._hello()
                case Due.PROGRESS:
                    self._send_progress()

    def progress(self, phase: str, stdout_bytes: int, stderr_bytes: int) -> None:
        """Notes how far the task is; sent at most once a second, and first after a second."""
        if self._run is None:
            return
        self._progress = Progress(self._run, phase, stdout_bytes, stderr_bytes)
        if Due.PROGRESS not in self._deadlines:
            self._deadlines.set(Due.PROGRESS, self._clock.mono_ms() + PROGRESS_INTERVAL_MS)

    def report(self, outcome: bytes, *, saved: bool) -> bool:
        """Sends the outcome once. False if there is nobody to send it to. The caller repeats it until Recorded."""
        if self._run is None:
            raise RuntimeError("no run to report")
        self._deadlines.clear(Due.PROGRESS)
        sent = self._send(Report(self._run, self._secret, outcome, saved))
        if sent:
            failpoints.hit("executor.after_outcome_sent")
        return sent

    def connected(self) -> bool:
        """Reads the monitor. True if the scheduler, perhaps a new one, was reached just now: whatever was unanswered is
        lost, and it is greeted."""
        reached = False
        for _ in drain(self.monitor, _MESSAGES_PER_TURN):
            # The one kind of event that was asked for.
            reached = True
        if reached and self._run is not None:
            self._hello()
        return reached

    def receive(self) -> Iterator[ToExecutor]:
        """A bounded number of messages about the run that is held; all others are dropped."""
        for frames in drain(self.socket, _MESSAGES_PER_TURN):
            try:
                message = decode_to_executor(frames[-1])
            except msgspec.DecodeError as error:
                log.warning("executor.bad_message", f"a message on `run` cannot be decoded: {error}")
                continue
            if message.run == self._run:
                yield message

    def answered(self) -> None:
        """The last hello was answered; the next is due in its time."""
        self._deadlines.set(Due.HELLO, self._clock.mono_ms() + HELLO_INTERVAL_MS)

    def close(self) -> None:
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(0)

    def _hello(self) -> None:
        if self._run is None:
            return
        sent = self._send(Hello(self._run, self._secret, self._pid))
        self._deadlines.set(Due.HELLO, self._clock.mono_ms() + (HELLO_LOST_MS if sent else RETRY_MS))

    def _send_progress(self) -> None:
        if self._progress is not None:
            self._send(self._progress)
            self._progress = None

    def _send(self, message: FromExecutor) -> bool:
        try:
            self.socket.send(encode(message), zmq.DONTWAIT)
        except zmq.Again:
            return False
        return True
