"""The harness finds what it is there for: each fault of a product that breaks its promise is planted once."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cronward.scheduler.actor import Actor
from cronward.scheduler.effects import Effects
from cronward.scheduler.store import Store
from cronward.scheduler.world import Turn
from tests.storage.matrix import every_case
from tests.storage.support.case import operations, run_case
from tests.storage.support.faults import DEADLY, Fault
from tests.storage.support.kinds import KINDS, Kind
from tests.storage.support.medium import Medium, Newest, Nothing, Torn, Write
from tests.storage.support.rig import Rig

ADD = next(kind for kind in KINDS if kind.name == "add with requestId")
OUTCOME = next(kind for kind in KINDS if kind.name == "outcome (commit C)")


class WithoutSync(Rig):
    """synchronous=OFF."""

    synchronous = 0


class WithoutLog(Rig):
    """No write-ahead log, and a journal that a crash forgets."""

    def make_store(self) -> Store:
        self.connection.execute("PRAGMA journal_mode = MEMORY").fetchall()
        return super().make_store()


@pytest.fixture
def problems(base: Path, copy: Path) -> Callable[..., list[str]]:
    """Everything that is wrong with a kind under some faults."""

    def found(kind: Kind, faults: frozenset[Fault], rig_type: type[Rig] = Rig) -> list[str]:
        count = operations(kind, base, copy)
        cases = [case for case in every_case(kind, count, 1) if case.fault in faults]
        return [problem for case in cases for problem in run_case(case, base, copy, rig_type)]

    return found


def test_the_product_as_it_is_has_no_problem(problems: Callable[..., list[str]]) -> None:
    assert problems(ADD, DEADLY | {Fault.FULL}) == []


def test_commits_that_are_not_synced_are_found(problems: Callable[..., list[str]]) -> None:
    assert problems(ADD, frozenset({Fault.CRASH}), WithoutSync) == []
    found = problems(ADD, frozenset({Fault.POWER_LOST}), WithoutSync)
    assert any("the first answer to token is not kept" in problem for problem in found)


def test_transactions_that_are_not_atomic_are_found(problems: Callable[..., list[str]]) -> None:
    found = problems(ADD, frozenset({Fault.CRASH}), WithoutLog)
    assert any("no commit made" in problem or "inconsistent" in problem for problem in found)


@pytest.mark.parametrize(("kind", "said"), [(ADD, "the first answer to token"), (OUTCOME, "Recorded was sent")])
def test_answers_before_the_commit_are_found(
    problems: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, kind: Kind, said: str
) -> None:
    real = Actor._transaction

    @contextlib.contextmanager
    def hasty(actor: Actor, turn: Turn) -> Iterator[None]:
        with real(actor, turn):
            yield
            actor._emission.send(turn.effects)
            turn.effects.return_to(Effects().mark())

    monkeypatch.setattr(Actor, "_transaction", hasty)
    assert any(said in problem for problem in problems(kind, frozenset({Fault.CRASH})))


def test_a_service_that_never_notices_new_space_is_found(
    problems: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Actor, "_try_to_write", lambda actor: None)
    assert any("the status does not know" in problem for problem in problems(ADD, frozenset({Fault.FULL})))


def test_what_was_not_synced_may_be_lost_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 1024)
    for keep, expected in (
        (Nothing(), {b"a" * 1024}),
        (Newest(), {b"a" * 1024, b"a" * 512 + b"c" * 512}),
        (Torn(), {x * 512 + y * 512 for x in (b"a", b"b") for y in (b"a", b"c")}),
    ):
        seen = set()
        for seed in range(40):
            path.write_bytes(b"a" * 1024)
            medium = Medium(path)
            medium.changed(Write(0, b"b" * 512))
            medium.changed(Write(512, b"c" * 512))
            medium.restore(keep, random.Random(seed))
            seen.add(path.read_bytes())
        assert seen == expected


def test_what_was_synced_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a")
    medium = Medium(path)
    medium.changed(Write(0, b"b"))
    medium.synced()
    medium.restore(Nothing(), random.Random(0))
    assert path.read_bytes() == b"b"
