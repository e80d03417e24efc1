"""The run directory: names and formats of what launcher and executor leave there. The scheduler never looks inside.

`state/runs/<32 hex>/` holds `lock` (its flock is the run's life, its one byte says whether the task may still run),
`intent` (what to run, written by the launcher before the directory gets its name), `stdout` and `stderr` (made with
the first byte), and at last `outcome`. Intent and outcome are sealed: a magic, the SHA-256 of the body, the body; so a
file that was cut by a power loss, or is somebody else's, is told from one of ours.
"""

import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta

from cronward.protocol import decoding
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.outcome import Whole

LOCK = "lock"
INTENT = "intent"
STDOUT = "stdout"
STDERR = "stderr"
OUTCOME = "outcome"
OUTCOME_NEW = "outcome.new"

NEW_PREFIX = ".new-"
FORGET_PREFIX = ".forget-"

TASK_MAY_RUN = b"0"
TASK_OVER = b"1"

_MAGIC = b"CRWD1\n"
SEAL_BYTES = len(_MAGIC) + 32
SEALED_MAX_BYTES = 4 * 1024 * 1024


Natural = Annotated[int, Meta(ge=0, le=2**53)]


class Limits(msgspec.Struct, frozen=True, array_like=True):
    """What the configuration and the job allow this run, fixed when it became active. None or 0 means no limit.

    `timeout_ms` bounds the task itself, `no_output_ms` its silence. `setup_ms` bounds everything before the task
    starts, `cleanup_ms` everything after it ended; `grace_ms` lies between TERM and KILL.
    """

    timeout_ms: Natural
    no_output_ms: Natural
    setup_ms: Natural
    grace_ms: Natural
    cleanup_ms: Natural
    output_max_bytes: Natural


class Intent(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """What a run is to do and who does it. New fields go to the end, with a default.

    `job` is the JSON of the job definition. `executor` only addresses signals. `deadline_mono_ms` is the last of the
    executor's own deadlines on CLOCK_MONOTONIC of `executor.boot_id`, or None if the run may last for ever.
    """

    run: str
    kind: str
    job: bytes
    limits: Limits
    executor: ProcessIdentity
    deadline_mono_ms: Whole | None
    path: str
    leave_children: bool = False


class Damaged(Exception):
    """A file of a run directory is cut, foreign or unreadable; the text says which and why."""


def seal(body: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(body).digest() + body


def unseal(data: bytes, name: str) -> bytes:
    """The body. Raises Damaged."""
    if not data.startswith(_MAGIC):
        raise Damaged(f"{name} is not a file of Cronward")
    body = data[SEAL_BYTES:]
    if hashlib.sha256(body).digest() != data[len(_MAGIC) : SEAL_BYTES]:
        raise Damaged(f"{name} is incomplete or was changed")
    return body


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Intent)


def encode_intent(intent: Intent) -> bytes:
    """The sealed bytes for the file."""
    return seal(_encoder.encode(intent))


def decode_intent(data: bytes) -> Intent:
    """Raises Damaged."""
    try:
        return decoding.decode(_decoder, unseal(data, INTENT))
    except msgspec.DecodeError as error:
        raise Damaged(f"{INTENT} cannot be decoded: {error}") from error
