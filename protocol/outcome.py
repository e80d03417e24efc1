"""What became of a run, as the executor saves it, sends it, and as the launcher reports it from disk."""

import enum
from typing import Annotated

import msgspec
from msgspec import Meta

from cronward.protocol import decoding

Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""What the ledger and every reader of JSON can hold. Anything else is damaged."""


class Status(enum.StrEnum):
    """Public status of a finished run."""

    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"


class Reason(enum.StrEnum):
    """Why a run ended as it did. Stable; shown beside the status."""

    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    TIMED_OUT = "timed_out"
    NO_OUTPUT = "no_output"
    OUTPUT_LIMIT = "output_limit"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    INTERRUPTED = "interrupted"
    LAUNCH_LOST = "launch_lost"
    ABANDONED = "abandoned"
    SPAWN_FAILED = "spawn_failed"
    CWD_MISSING = "cwd_missing"
    CWD_NOT_DIRECTORY = "cwd_not_directory"
    CWD_FORBIDDEN = "cwd_forbidden"
    PROGRAM_MISSING = "program_missing"
    PROGRAM_NOT_EXECUTABLE = "program_not_executable"
    ARGUMENTS_TOO_LONG = "arguments_too_long"
    USER_UNKNOWN = "user_unknown"
    USER_FORBIDDEN = "user_forbidden"
    SECRET_UNAVAILABLE = "secret_unavailable"  # noqa: S105 - a reason, not a secret
    SETUP_TIMED_OUT = "setup_timed_out"
    SETUP_FAILED = "setup_failed"
    GATEWAY_UNAVAILABLE = "gateway_unavailable"
    DISABLED = "disabled"
    REMOVED = "removed"
    RESCHEDULED = "rescheduled"
    CONTEXT_LOST = "context_lost"
    UNKNOWN_KIND = "unknown_kind"
    INVALID_SPEC = "invalid_spec"
    NOT_DUE = "not_due"
    UNCLASSIFIED = "unclassified"
    MISSED = "missed"


class Stream(msgspec.Struct, frozen=True, array_like=True):
    """One output stream of a run.

    `written` bytes and `sha256` (hex) are of everything that was written after secrets were masked, also beyond the
    cap; `kept` bytes are in the run directory's file. `head` and `tail` are the excerpt; where they would overlap the
    tail is empty and the head is everything. A cap that was reached makes `truncated` true.
    """

    written: Whole = 0
    kept: Whole = 0
    sha256: str = ""
    head: bytes = b""
    tail: bytes = b""
    truncated: bool = False


class Outcome(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The terminal fact of a run. New fields go to the end, with a default; none is ever retyped or reordered.

    Times are epoch ms of the executor's wall clock; `duration_ms` is monotonic and counts from the start of the
    task. `started_ms` is None when no task was started. `left` counts processes that were left alive on purpose
    (leaveChildren) or could not be ended; `unended` says it was the latter.
    """

    run: str
    status: Status
    reason: Reason | None
    message: str
    started_ms: Whole | None
    ended_ms: Whole
    duration_ms: Whole
    exit_code: Whole | None = None
    signal: Whole | None = None
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    left: Whole = 0
    unended: bool = False
    cpu_ms: Whole = 0
    max_rss_kib: Whole = 0


EXCERPT_HEAD_BYTES = 2048
EXCERPT_TAIL_BYTES = 4096
MESSAGE_MAX_CHARS = 1000

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Outcome)


def encode(outcome: Outcome) -> bytes:
    return _encoder.encode(outcome)


def decode(data: bytes) -> Outcome:
    """Raises msgspec.DecodeError."""
    return decoding.decode(_decoder, data)
