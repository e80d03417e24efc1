"""A control client that shares no code with the product's own: raw JSON over a DEALER."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import zmq

from cronward.protocol.errors import ErrorBody

T = TypeVar("T")
TIMEOUT_S = 10.0


class Answer(msgspec.Struct, frozen=True):
    """A response as it comes from the wire."""

    id: str | int | None
    ok: bool
    payload: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorBody | None = None


class Rejected(Exception):
    """The scheduler answered with an error."""

    def __init__(self, error: ErrorBody) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error
        self.code = error.code


class ControlClient:
    """One connection to the `control` or `query` socket at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._context = zmq.Context[zmq.Socket[bytes]]()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, 10_000)
        self._socket.setsockopt(zmq.RCVHWM, 10_000)
        self._socket.connect(f"ipc://{path}")
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._context.destroy(linger=0)

    def call(
        self, method: str, kind: type[T], params: Mapping[str, object] | None = None, timeout_s: float = TIMEOUT_S
    ) -> T:
        """The answer's payload as `kind`. Raises Rejected, or TimeoutError. Parameters are spelled as on the wire."""
        sent = self.send(method, params or {})
        while True:
            answer = self.receive(timeout_s)
            if answer.id == sent:  # an answer to a request that was given up may come late
                return _payload(answer, kind)

    def call_many(self, method: str, kind: type[T], many: Iterable[Mapping[str, object]], window: int) -> Iterator[T]:
        """Answers to many requests of which up to `window` are unanswered at a time, in the order they come."""
        pending = 0
        for params in many:
            if pending == window:
                yield _payload(self.receive(), kind)
                pending -= 1
            self.send(method, params)
            pending += 1
        for _ in range(pending):
            yield _payload(self.receive(), kind)

    def send(self, method: str, params: Mapping[str, object]) -> int:
        """Sends a request without waiting and returns its id."""
        self._last_id += 1
        request = {"type": "req", "id": self._last_id, "method": method, "params": params}
        self._socket.send(msgspec.json.encode(request))
        return self._last_id

    def send_bytes(self, data: bytes) -> None:
        """Sends anything at all."""
        self._socket.send(data)

    def receive(self, timeout_s: float = TIMEOUT_S) -> Answer:
        """The next answer. Raises TimeoutError."""
        if not self._socket.poll(int(timeout_s * 1000)):
            raise TimeoutError(f"no answer on {self._path} within {timeout_s:g} s")
        return msgspec.json.decode(self._socket.recv(), type=Answer)


def _payload(answer: Answer, kind: type[T]) -> T:
    if not answer.ok:
        assert answer.error is not None
        raise Rejected(answer.error)
    return msgspec.json.decode(answer.payload, type=kind)
