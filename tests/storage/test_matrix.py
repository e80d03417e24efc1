"""A selection of the matrix that `make storage` runs whole: every kind, every fault, at operations by chance."""

import os
import random
from pathlib import Path

import pytest

from tests.storage.matrix import some_cases
from tests.storage.support.case import operations, run_case
from tests.storage.support.faults import Fault
from tests.storage.support.kinds import KINDS, Kind

PER_FAULT = 2
SEED = int(os.environ.get("CRONWARD_TEST_SEED") or random.SystemRandom().randrange(2**32))
"""Printed with a failure; give it again to repeat."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_selection_of_operations(kind: Kind, base: Path, copy: Path) -> None:
    found = operations(kind, base, copy)
    cases = some_cases(kind, found, random.Random(f"{SEED} {kind.name}"), PER_FAULT)
    assert {case.fault for case in cases} == set(Fault)
    wrong = {str(case): problems for case in cases if (problems := run_case(case, base, copy))}
    assert wrong == {}, f"CRONWARD_TEST_SEED={SEED}"
