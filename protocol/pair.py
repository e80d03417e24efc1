"""Packets on the SOCK_SEQPACKET pair between the launcher and one executor. End-of-file is the order to exit.

HandOver carries one descriptor by SCM_RIGHTS: the run's lock, which the executor holds until it says Free.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from cronward.protocol import decoding
from cronward.protocol.identity import ProcessIdentity

PACKET_MAX_BYTES = 8192


class HandOver(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """launcher → executor: run this. `directory` is absolute; what to do is in its intent."""

    run: str
    directory: Annotated[str, Meta(pattern=r"^/[^\0]*$")]
    secret: str


class CancelRun(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """launcher → executor: end this run if it is the one you hold."""

    run: str
    why: str


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """executor → launcher: everything is imported, the sockets are open."""

    executor: ProcessIdentity


class Free(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """executor → launcher: the lock of `run` is closed. `fit` False asks to be retired; `rss_kib` is its own size."""

    run: str
    acknowledged: bool
    fit: bool
    rss_kib: int


class Unfit(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """executor → launcher: idle and not to be used any more (it got SIGTERM)."""

    why: str


ToExecutor = HandOver | CancelRun
FromExecutor = Ready | Free | Unfit

_encoder = msgspec.msgpack.Encoder()
_to_executor = msgspec.msgpack.Decoder[ToExecutor](ToExecutor)
_from_executor = msgspec.msgpack.Decoder[FromExecutor](FromExecutor)


def encode(packet: ToExecutor | FromExecutor) -> bytes:
    return _encoder.encode(packet)


def decode_to_executor(data: bytes) -> ToExecutor:
    """Raises msgspec.DecodeError."""
    return decoding.decode(_to_executor, data)


def decode_from_executor(data: bytes) -> FromExecutor:
    """Raises msgspec.DecodeError."""
    return decoding.decode(_from_executor, data)
