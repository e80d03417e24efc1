"""A moment of each fuzzer. `make fuzz SECONDS=600` runs them for longer; a failure names its seed and its input."""

import os
import random
from collections.abc import Callable

import msgspec
import pytest

from cronward.protocol import job, outcome, pair, rundir
from cronward.protocol.errors import InvalidRequest
from cronward.schedule.duration import parse_duration_ms
from cronward.schedule.zones import zone
from tests.fuzz import file_targets, scheduler_targets
from tests.fuzz.engine import Broken, Target, fuzz
from tests.fuzz.mutation import Mutator
from tests.fuzz.targets import TARGETS
from tests.support.scheduler_bench import Bench

SECONDS = float(os.environ.get("CRONWARD_TEST_FUZZ_S", "2"))


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_breaks(name: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    target = TARGETS[name]()
    try:
        report = fuzz(name, target, SECONDS, seed)
    finally:
        target.close()
    print(report)
    assert report.inputs > 50


class Fake:
    """A target that is as bad as it is told to be."""

    def __init__(self, feed: Callable[[bytes], object]) -> None:
        self._feed = feed

    def make(self, mutator: Mutator) -> bytes:
        return mutator.data(b"message")

    def feed(self, data: bytes) -> None:
        self._feed(data)

    def renew(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


def spin(data: bytes) -> None:
    sum(range(20_000_000))


@pytest.mark.parametrize(("feed", "problem"), [(lambda data: 1 // 0, "ZeroDivisionError"), (spin, "ms of CPU")])
def test_what_breaks_is_reported_with_its_seed_and_input(feed: Callable[[bytes], object], problem: str) -> None:
    with pytest.raises(Broken, match=problem) as caught:
        fuzz("fake", Fake(feed), 5, seed=77)
    assert "seed 77, input 1:" in str(caught.value)


def test_a_bug_that_the_product_survives_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise LookupError("on purpose")

    monkeypatch.setattr("cronward.scheduler.ledger.finish", broken)
    target: Target = scheduler_targets.FromExecutor()
    monkeypatch.setattr(target, "keep_active", lambda: None)
    monkeypatch.setattr(Bench, "start", lambda bench, job: "run")
    monkeypatch.setattr(Bench, "report", lambda bench, run: None)
    try:
        with pytest.raises(Broken, match="on purpose"):
            fuzz("broken", target, 10, seed=1)
    finally:
        target.close()


def test_the_same_seed_makes_the_same_inputs() -> None:
    def inputs() -> list[bytes]:
        target, mutator = file_targets.Configuration(), Mutator(random.Random(5))
        made = [target.make(mutator) for _ in range(50)]
        target.close()
        return made

    assert inputs() == inputs()


# What the fuzzers found, kept.


@pytest.mark.parametrize("value", ["[" * 3000, "9" * 5000], ids=["levels", "digits"])
def test_toml_beyond_the_parsers_limits_is_a_configuration_error(value: str) -> None:
    target = file_targets.Configuration()
    try:
        target.feed(f"[capacity]\nruns = {value}\n".encode())
    finally:
        target.close()


def test_a_duration_of_a_million_digits_is_refused_at_once() -> None:
    fuzz("duration", Fake(lambda data: parse_duration_ms("0" * 1_000_000)), 0.1, seed=1)


def test_a_zone_of_thousands_of_parts_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no known time zone"):
        zone("A" + "/A" * 9000)


def test_a_definition_that_nests_too_deeply_is_damage() -> None:
    """In a run directory, and in a row of the database."""
    nested = job.encode(job.decode(file_targets.INTENT.job)).replace(b"60000", b"[" * 5000)
    with pytest.raises(msgspec.DecodeError):
        job.decode(nested)
    target = file_targets.RunDirectory()
    try:
        target.renew()
        target.feed(b"i" + rundir.encode_intent(msgspec.structs.replace(file_targets.INTENT, job=nested)))
    finally:
        target.close()


def test_numbers_beyond_the_ledger_are_damage() -> None:
    good = msgspec.msgpack.decode(outcome.encode(file_targets.OUTCOME))
    for place, part in enumerate(good):
        if type(part) is int and place > 0:
            with pytest.raises(msgspec.ValidationError):
                outcome.decode(msgspec.msgpack.encode([*good[:place], 2**64 - 1, *good[place + 1 :]]))


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**63])
def test_no_system_call_gets_an_impossible_pid(pid: int) -> None:
    with pytest.raises(msgspec.ValidationError):
        pair.decode_from_executor(msgspec.msgpack.encode([20, [pid, 1, "boot"]]))
