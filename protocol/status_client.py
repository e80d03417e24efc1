"""Following a scheduler through `runtime/status/` alone: what a dashboard, an exporter or `cronward watch` needs.

    with StatusClient(paths, SystemClock()) as status:
        while True:
            match status.wait(timeout_ms=1000):
                case Snapshot(view): show_everything(view)
                case Event() as event: apply(event)
                case Silence(): show_that_nobody_answers()

The first update is a snapshot, then every event after it, in order and without a gap. Where an event was lost, or
the scheduler was restarted, the client takes a new snapshot by itself and goes on from there; so whoever replaces
all it knows by each snapshot is right whatever happened in between.
"""

from collections import deque
from types import TracebackType
from typing import Self

import msgspec
import zmq

from cronward.protocol import sockets
from cronward.protocol.client import ANSWER_MAX_BYTES
from cronward.protocol.clock import Clock
from cronward.protocol.control import Event, Request, Response
from cronward.protocol.ids import new_request_id
from cronward.protocol.paths import Paths
from cronward.protocol.views import StatusSnapshot

SILENCE_MS = 3_500
"""The scheduler beats once a second; after this long without any event it is called silent."""

ASK_AGAIN_MS = 1_000
"""A snapshot that did not come is asked for again this much later."""

HELD_MAX = 10_000
"""Events kept while a snapshot is on its way; beyond it the oldest go, which is a gap like any other."""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything, as of now. Replaces whatever was known."""

    view: StatusSnapshot


class Silence(msgspec.Struct, frozen=True):
    """Nothing was heard for `SILENCE_MS`; said once. The next update after it is a snapshot."""


Update = Snapshot | Event | Silence


class Follower:
    """The rule by which events follow a snapshot, without any socket.

    While `following`, events are passed on in order. Otherwise they are held until a snapshot comes that they follow.
    """

    def __init__(self) -> None:
        self.following = False
        self._instance = ""
        self._seq = 0
        self._held: deque[Event] = deque(maxlen=HELD_MAX)

    def on_event(self, event: Event) -> Event | None:
        """The event if it is the next one; None if it is old, or held because there is a gap before it."""
        if self.following and event.instance == self._instance:
            if event.seq == self._seq + 1:
                self._seq = event.seq
                return event
            if event.seq <= self._seq:
                return None
        self.following = False
        self._held.append(event)
        return None

    def on_snapshot(self, instance: str, seq: int) -> list[Event]:
        """The held events that follow the snapshot. Those of another instance came from its predecessor, or will be
        seen as a change of instance with the next event."""
        self.following, self._instance, self._seq = True, instance, seq
        held = [event for event in self._held if event.instance == instance]
        self._held.clear()
        return [event for event in map(self.on_event, held) if event is not None]

    def lose(self) -> None:
        """Nothing is known any more: a snapshot is needed."""
        self.following = False


class StatusClient:
    """One dashboard's connection: `events` to listen, `query` to ask. Not for several threads.

    Needs access to `runtime/status/` and to nothing else (group `cronward`, architecture section 5).
    """

    def __init__(self, paths: Paths, clock: Clock) -> None:
        self._clock = clock
        self._follower = Follower()
        self._ready: deque[Update] = deque()
        self._request_id: str | None = None
        self._ask_at_ms = 0
        self._silent_at_ms: int | None = clock.mono_ms() + SILENCE_MS
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._events = sockets.subscriber(self._context, str(paths.events))
        self._query = sockets.dealer(self._context, str(paths.query), ANSWER_MAX_BYTES)
        self._poller = zmq.Poller()
        self._poller.register(self._events, zmq.POLLIN)
        self._poller.register(self._query, zmq.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._events.close(linger=0)
        self._query.close(linger=0)
        self._context.term()

    def wait(self, timeout_ms: int) -> Update | None:
        """The next update, or None if there is none within `timeout_ms`. Raises msgspec.ValidationError if the
        scheduler's snapshot is of a release that this one cannot read."""
        until = self._clock.mono_ms() + timeout_ms
        while not self._ready:
            now = self._clock.mono_ms()
            self._ask(now)
            self._notice_silence(now)
            if self._ready or now >= until:
                break
            self._poller.poll(min(until, self._next_deadline(now)) - now)
            self._read_events()
            self._read_answers()
        return self._ready.popleft() if self._ready else None

    def _next_deadline(self, now: int) -> int:
        deadlines = [] if self._follower.following else [self._ask_at_ms]
        if self._silent_at_ms is not None:
            deadlines.append(self._silent_at_ms)
        return max(now, min(deadlines, default=now + SILENCE_MS))

    def _ask(self, now: int) -> None:
        """Asks for a snapshot where one is needed. Only the answer to the latest question counts."""
        if self._follower.following or now < self._ask_at_ms:
            return
        self._ask_at_ms = now + ASK_AGAIN_MS
        if self._query.poll(0, zmq.POLLOUT):
            self._request_id = new_request_id()
            self._query.send(msgspec.json.encode(Request(self._request_id, "status.snapshot")), zmq.DONTWAIT)
        else:
            self._ask_at_ms = now + ASK_AGAIN_MS // 10

    def _notice_silence(self, now: int) -> None:
        if self._silent_at_ms is not None and now >= self._silent_at_ms:
            self._silent_at_ms = None
            self._follower.lose()
            self._ready.append(Silence())

    def _heard(self) -> None:
        self._silent_at_ms = self._clock.mono_ms() + SILENCE_MS

    def _read_events(self) -> None:
        for frames in sockets.drain(self._events, 1000):
            event = _decode_event(frames[-1])
            if event is None:
                self._follower.lose()
                continue
            self._heard()
            following = self._follower.following
            passed = self._follower.on_event(event)
            if passed is not None:
                self._ready.append(passed)
            elif following and not self._follower.following:
                self._request_id, self._ask_at_ms = None, 0

    def _read_answers(self) -> None:
        for frames in sockets.drain(self._query, 100):
            response = _decode_response(frames[-1])
            if response is None or response.id != self._request_id or not isinstance(response.payload, msgspec.Raw):
                continue
            view = msgspec.json.decode(response.payload, type=StatusSnapshot)
            self._request_id = None
            self._heard()
            self._ready.append(Snapshot(view))
            self._ready.extend(self._follower.on_snapshot(view.instance, view.seq))


_event_decoder = msgspec.json.Decoder(Event)
_response_decoder = msgspec.json.Decoder(Response)


def _decode_event(data: bytes) -> Event | None:
    """None for what cannot be read: it may have been an event, so it counts as a gap."""
    try:
        return _event_decoder.decode(data)
    except msgspec.DecodeError:
        return None


def _decode_response(data: bytes) -> Response | None:
    try:
        return _response_decoder.decode(data)
    except msgspec.DecodeError:
        return None
