"""Messages on the `run` socket, between an executor (DEALER) and the scheduler (ROUTER). msgpack, tagged arrays.

Each message names its run, in both directions. Evolution rules as in `launch`.
"""

import msgspec

from cronward.protocol import decoding
from cronward.protocol.version import WIRE

HELLO_INTERVAL_MS = 5000
"""An executor greets at once and then this often; one hello is unanswered at a time."""

OUTCOME_RESEND_MS = 1000
"""An outcome is sent again this long after the last time, and fsynced before the second."""

OUTCOME_HOLD_MS = 10 * 60 * 1000
"""An executor keeps a saved outcome in hand this long; then the launcher reports it from the directory."""


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """This executor holds this run. Also the heartbeat."""

    run: str
    secret: str
    pid: int
    wire: int = WIRE


class Progress(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """What the task has written so far; `phase` is setup, running, cleanup or delivering. Kept in memory only."""

    run: str
    phase: str
    stdout_bytes: int
    stderr_bytes: int


class Report(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The run's outcome, as encoded by `outcome.encode`. Repeated until Recorded. Needs no hello before it.
    `saved` is False while it could not be written to the run directory."""

    run: str
    secret: str
    outcome: bytes
    saved: bool = True


class HelloAnswer(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """The scheduler heard. `cancel` says why the run is to be ended, or is None."""

    run: str
    instance: str
    cancel: str | None = None


class Recorded(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """The outcome of this run is committed, or was already."""

    run: str


FromExecutor = Hello | Progress | Report
ToExecutor = HelloAnswer | Recorded

MESSAGE_MAX_BYTES = 256 * 1024

_encoder = msgspec.msgpack.Encoder()
_from_executor = msgspec.msgpack.Decoder[FromExecutor](FromExecutor)
_to_executor = msgspec.msgpack.Decoder[ToExecutor](ToExecutor)


def encode(message: FromExecutor | ToExecutor) -> bytes:
    return _encoder.encode(message)


def decode_from_executor(data: bytes) -> FromExecutor:
    """Raises msgspec.DecodeError."""
    return decoding.decode(_from_executor, data)


def decode_to_executor(data: bytes) -> ToExecutor:
    """Raises msgspec.DecodeError."""
    return decoding.decode(_to_executor, data)
