"""The bytes of every message are written down: a change that old peers or old run directories would not read fails."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest

from cronward.protocol import launch, outcome, pair, run, rundir
from tests.unit.protocol import samples

GOLDEN = Path(__file__).parents[2] / "golden"
Decode = Callable[[bytes], object]

DECODERS: dict[str, Decode] = {
    "launch.from": launch.decode_from_launcher,
    "launch.to": launch.decode_to_launcher,
    "run.from": run.decode_from_executor,
    "run.to": run.decode_to_executor,
    "pair.from": pair.decode_from_executor,
    "pair.to": pair.decode_to_executor,
    "rundir.outcome": outcome.decode,
}


class Case(NamedTuple):
    """A sample, its bytes now, the golden file that it belongs to."""

    file: str
    message: object
    encoded: bytes
    decode: Decode

    @property
    def name(self) -> str:
        return type(self.message).__name__


def cases() -> Iterator[Case]:
    for to_scheduler in samples.LAUNCH:
        side = "from" if isinstance(to_scheduler, launch.FromLauncher) else "to"
        yield Case("launch", to_scheduler, launch.encode(to_scheduler), DECODERS[f"launch.{side}"])
    for reported in samples.RUN:
        side = "from" if isinstance(reported, run.FromExecutor) else "to"
        yield Case("run", reported, run.encode(reported), DECODERS[f"run.{side}"])
    for packet in samples.PAIR:
        side = "from" if isinstance(packet, pair.FromExecutor) else "to"
        yield Case("pair", packet, pair.encode(packet), DECODERS[f"pair.{side}"])
    yield Case("rundir", samples.INTENT, rundir.encode_intent(samples.INTENT), rundir.decode_intent)
    yield Case("rundir", samples.OUTCOME, outcome.encode(samples.OUTCOME), outcome.decode)


CASES = list(cases())
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def golden(file: str) -> dict[str, str]:
    return msgspec.json.decode((GOLDEN / f"{file}.json").read_bytes(), type=dict[str, str])


@each_case
def test_bytes_are_the_golden_ones(case: Case) -> None:
    known = golden(case.file)
    assert case.name in known, f'add to tests/golden/{case.file}.json: "{case.name}": "{case.encoded.hex()}"'
    assert case.encoded.hex() == known[case.name], "changed on the wire; old peers and old files are still to be read"
    assert case.decode(bytes.fromhex(known[case.name])) == case.message


@each_case
def test_fields_of_a_newer_release_are_ignored(case: Case) -> None:
    sealed = isinstance(case.message, rundir.Intent)
    body = rundir.unseal(case.encoded, "intent") if sealed else case.encoded
    longer = msgspec.msgpack.encode([*msgspec.msgpack.decode(body), "a later field"])
    assert case.decode(rundir.seal(longer) if sealed else longer) == case.message


@each_case
def test_every_prefix_is_an_error(case: Case) -> None:
    for length in range(len(case.encoded)):
        with pytest.raises((msgspec.DecodeError, rundir.Damaged)):
            case.decode(case.encoded[:length])


def test_every_message_has_a_sample_and_a_golden() -> None:
    unions: tuple[object, ...] = (
        *(launch.FromLauncher, launch.ToLauncher),
        *(run.FromExecutor, run.ToExecutor),
        *(pair.FromExecutor, pair.ToExecutor),
    )
    messages = {kind.__name__ for union in unions for kind in get_args(union)} | {"Intent", "Outcome"}
    assert {case.name for case in CASES} == messages
    assert {name for file in ("launch", "run", "pair", "rundir") for name in golden(file)} == messages


def test_tags_are_unique_on_each_socket() -> None:
    for both in (samples.LAUNCH, samples.RUN, samples.PAIR):
        tags = [message.__struct_config__.tag for message in both]
        assert len(tags) == len(set(tags))


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"{}", b"\x90", b"\x91\x63", b"\x93\x01\x01\x01", b"x" * 70_000],
    ids=lambda data: data[:4].hex() or "empty",
)
def test_garbage_is_a_decode_error(decoder: str, data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        DECODERS[decoder](data)
