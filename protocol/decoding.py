"""Decoding bytes from outside: whatever they are, the answer is a value or a DecodeError."""

from typing import Protocol, TypeVar

import msgspec

T_co = TypeVar("T_co", covariant=True)


class Decoder(Protocol[T_co]):
    """One of msgspec's."""

    def decode(self, buf: bytes, /) -> T_co: ...


def decode(decoder: Decoder[T_co], data: bytes) -> T_co:
    """Raises msgspec.DecodeError, also for what is nested so deeply that the decoder gives up."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
