"""Requests to the scheduler's `control` and `query` sockets, one at a time, each with a deadline and a typed result.

    with ControlClient(paths.query, SystemClock()) as client:
        job = client.request("cron.get", JobRef(id="backup"), JobView)

A request whose answer does not come is sent again, unchanged, until its deadline: so it outlives a restart of the
scheduler. That is safe for everything that only reads, for writes with a `requestId` (the scheduler gives the first
answer again), and for orders that name a state (pause, drain, cancel); `repeat=False` is for the rest.
"""

from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec
import zmq

from cronward.protocol import sockets
from cronward.protocol.clock import Clock
from cronward.protocol.control import Params, Request, Response
from cronward.protocol.errors import Code, CronwardError, ErrorBody, Unreachable
from cronward.protocol.ids import new_request_id

DEFAULT_TIMEOUT_MS = 10_000
FIRST_CONTACT_MS = 2_000
"""A scheduler that nobody sees for this long, before anything was sent, is called missing. It covers a restart."""

REPEAT_MS = 2_000
"""A request without an answer is sent again after this long."""

STOPPING_REPEAT_MS = 200
"""One that was refused because the scheduler is stopping is for its successor, and sent again this much later."""

ANSWER_MAX_BYTES = 64 * 1024 * 1024

T = TypeVar("T")

_response_decoder = msgspec.json.Decoder(Response)


class Unanswered(CronwardError):
    """The scheduler was there, but did not answer in time. What was asked for may or may not have happened."""

    def __init__(self, method: str, timeout_ms: int) -> None:
        message = f"the scheduler did not answer {method} within {timeout_ms / 1000:g} s; it may still act on it"
        super().__init__(Code.TIMEOUT, message, method=method)


class ControlClient:
    """One connection to a `control` or `query` socket. Not for several threads. `caller` is whom a host acts for."""

    def __init__(self, path: Path, clock: Clock, *, caller: str | None = None) -> None:
        self._path = path
        self._clock = clock
        self._caller = caller
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = sockets.dealer(self._context, str(path), ANSWER_MAX_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """What was not sent by now is not sent."""
        self._socket.close(linger=0)
        self._context.term()

    def request(
        self,
        method: str,
        params: Params | dict[str, object],
        result: type[T],
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        *,
        repeat: bool = True,
    ) -> T:
        """The answer as `result`. Raises what `call` raises."""
        return decode_result(self.call(method, params, timeout_ms, repeat=repeat), result)

    def call(
        self,
        method: str,
        params: Params | dict[str, object],
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        *,
        repeat: bool = True,
    ) -> bytes:
        """The answer's payload, as JSON.

        Raises Unreachable if nobody is there, Unanswered if somebody is but says nothing, and CronwardError with the
        scheduler's own code if it refuses.
        """
        request_id = new_request_id()
        body = msgspec.Raw(msgspec.json.encode(params))
        data = msgspec.json.encode(Request(request_id, method, body, caller=self._caller))
        deadline = self._clock.mono_ms() + timeout_ms
        if not self._send(data, min(timeout_ms, FIRST_CONTACT_MS)):
            raise Unreachable(f"no scheduler answers on {self._path}")
        patience_ms = REPEAT_MS
        refusal: CronwardError = Unanswered(method, timeout_ms)
        while (left_ms := deadline - self._clock.mono_ms()) > 0:
            response = self._receive(request_id, min(left_ms, patience_ms) if repeat else left_ms)
            if response is None:
                patience_ms = REPEAT_MS
                self._send(data, deadline - self._clock.mono_ms())
            elif response.ok and isinstance(response.payload, msgspec.Raw):
                return bytes(response.payload)
            else:
                refusal = _error(response.error)
                if not (repeat and refusal.code is Code.STOPPING):
                    break
                patience_ms = STOPPING_REPEAT_MS
        raise refusal

    def _send(self, data: bytes, wait_ms: int) -> bool:
        """Sends to whoever is there within `wait_ms`; False if nobody is."""
        if wait_ms <= 0 or not self._socket.poll(wait_ms, zmq.POLLOUT):
            return False
        try:
            self._socket.send(data, zmq.DONTWAIT)
        except zmq.Again:  # it went away between the two calls
            return False
        return True

    def _receive(self, request_id: str, wait_ms: int) -> Response | None:
        """The answer to this very request. Late answers to earlier ones and what cannot be read are dropped."""
        until = self._clock.mono_ms() + wait_ms
        while (left_ms := until - self._clock.mono_ms()) > 0 and self._socket.poll(left_ms):
            response = _decode(self._socket.recv_multipart())
            if response is not None and response.id == request_id:
                return response
        return None


def decode_result(payload: bytes, kind: type[T]) -> T:
    """An answer's payload as `kind`. Raises CronwardError(INTERNAL) if a scheduler of another release sent something
    else; fields that `kind` does not have are ignored."""
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.DecodeError as error:
        raise CronwardError(
            Code.INTERNAL, f"the scheduler's answer cannot be read as {kind.__name__}: {error}"
        ) from None


def _decode(frames: list[bytes]) -> Response | None:
    try:
        return _response_decoder.decode(frames[-1])
    except msgspec.DecodeError:
        return None


def _error(body: ErrorBody | None) -> CronwardError:
    """A code of a newer scheduler is shown as INTERNAL, with the real one in its details."""
    if body is None:
        return CronwardError(Code.INTERNAL, "the scheduler's answer has neither a payload nor an error")
    known = body.code in Code.__members__.values()
    error = CronwardError(Code(body.code) if known else Code.INTERNAL, body.message)
    error.details = body.details if known else body.details | {"code": body.code}
    return error
