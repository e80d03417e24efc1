"""Bytes that are nested without end, for every decoder of messages and files."""

from collections.abc import Callable

import msgspec
import pytest

from cronward.protocol import launch, outcome, pair, run, rundir

DEEP = 200_000
BODIES = {
    "arrays": b"\x91" * DEEP,
    "maps": b"\x81\xa1x" * DEEP,
    "arrays behind the tag": b"\x93\x01" + b"\x91" * DEEP,
    "a spare field": b"\x9f\x0a\xa1r" + b"\x91" * DEEP,
}


MESSAGES: list[Callable[[bytes], object]] = [
    launch.decode_from_launcher,
    launch.decode_to_launcher,
    run.decode_from_executor,
    run.decode_to_executor,
    pair.decode_to_executor,
    pair.decode_from_executor,
]


@pytest.mark.parametrize(
    "decode",
    [*MESSAGES, outcome.decode],
    ids=lambda decode: f"{decode.__module__.rpartition('.')[2]}.{decode.__name__}",
)
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_what_is_nested_too_deeply_is_undecodable(decode: Callable[[bytes], object], body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(body)


@pytest.mark.parametrize("tag", range(30))
def test_whatever_message_it_pretends_to_be(tag: int) -> None:
    for decode in MESSAGES:
        for values in range(14):
            body = bytes([0x9F, tag]) + b"\xa1r" * values + b"\x91" * DEEP
            with pytest.raises(msgspec.DecodeError):
                decode(body)


def test_an_intent_that_is_nested_too_deeply_is_damaged() -> None:
    with pytest.raises(rundir.Damaged):
        rundir.decode_intent(rundir.seal(b"\x9f\x01\xa1r\xa1k" + b"\x91" * DEEP))
