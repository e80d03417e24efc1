"""A seeded selection of simulations, and proof that each checker finds the kind of bug that it is there for.

`make simulate` runs a thousand seeds of a month each.
"""

import os
from pathlib import Path
from random import SystemRandom

import pytest

from tests.simulation.__main__ import one, report
from tests.simulation.checkers.every import EVERY, every_checker
from tests.simulation.mutations import MUTATIONS, Mutation
from tests.simulation.support.scenario import Scenario
from tests.simulation.support.simulation import simulate

KNOWN_SEEDS = range(1, 4)
FRESH_SEED = int(os.environ.get("CRONWARD_TEST_SEED", SystemRandom().randrange(10**9)))
"""Another one each time; the failure prints it, and CRONWARD_TEST_SEED repeats it."""

SEEDS_FOR_A_BUG = 4


@pytest.mark.parametrize("seed", [*KNOWN_SEEDS, pytest.param(FRESH_SEED, id="fresh")])
def test_no_invariant_is_broken(seed: int) -> None:
    print(f"seed {seed}")
    result = one(Scenario(seed, jobs=60, days=8))
    assert result.broken is None, report(result)
    assert result.tasks > 100


def test_the_same_seed_does_the_same() -> None:
    scenario = Scenario(7, jobs=30, days=4)
    first, second = (simulate(scenario, []) for _ in range(2))
    assert first == second
    assert simulate(Scenario(8, jobs=30, days=4), []).digest != first.digest


def test_watching_changes_nothing() -> None:
    scenario = Scenario(9, jobs=30, days=4)
    assert simulate(scenario, every_checker()).digest == simulate(scenario, []).digest


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_planted_bug_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mutation.plant(monkeypatch, tmp_path)
    for seed in range(1, SEEDS_FOR_A_BUG + 1):
        scenario = Scenario(
            seed,
            jobs=200,
            days=mutation.days,
            capacity=mutation.capacity,
            launcher_stalls=30,
            launcher_crashes=4,
            scheduler_crashes=4,
            executor_crash=0.1,
        )
        result = simulate(scenario, [mutation.checker()])
        if result.broken is not None:
            assert result.broken.startswith("Broken"), result.broken
            return
    pytest.fail(f"{mutation.name}: not found with {SEEDS_FOR_A_BUG} seeds")


def test_every_checker_has_its_bug() -> None:
    assert {mutation.checker for mutation in MUTATIONS} == set(EVERY)
