"""The matrix: every kind × every fault × every operation at which the fault can happen."""

import random

from tests.storage.support.case import Case
from tests.storage.support.faults import Fault, Op, places
from tests.storage.support.kinds import Kind


def every_case(kind: Kind, operations: list[Op], seed: int) -> list[Case]:
    """All of a kind's cases."""
    return [Case(kind, fault, index, seed + index) for fault in Fault for index in places(fault, operations)]


def some_cases(kind: Kind, operations: list[Op], dice: random.Random, per_fault: int) -> list[Case]:
    """A few of each fault, by chance."""
    chosen: list[Case] = []
    for fault in Fault:
        found = places(fault, operations)
        indices = dice.sample(found, min(per_fault, len(found)))
        chosen += [Case(kind, fault, index, dice.randrange(2**32)) for index in sorted(indices)]
    return chosen
