"""How many requests may become active: capacity, window, readiness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.scheduler.admission import UNANSWERED_MAX, Load, admit


@pytest.mark.parametrize(
    ("load", "free"),
    [
        (Load(ready=True, capacity=8, active=0, unanswered=0), 8),
        (Load(ready=True, capacity=8, active=8, unanswered=0), 0),
        (Load(ready=True, capacity=8, active=9, unanswered=0), 0),  # the capacity was lowered while runs are active
        (Load(ready=True, capacity=64, active=0, unanswered=0), UNANSWERED_MAX),
        (Load(ready=True, capacity=64, active=20, unanswered=15), 1),
        (Load(ready=True, capacity=64, active=20, unanswered=16), 0),
        (Load(ready=False, capacity=8, active=0, unanswered=0), 0),
    ],
)
def test_vectors(load: Load, free: int) -> None:
    assert admit(load) == free


@given(st.booleans(), st.integers(1, 512), st.integers(0, 600), st.integers(0, 20))
def test_never_beyond_capacity_or_window(ready: bool, capacity: int, active: int, unanswered: int) -> None:
    free = admit(Load(ready=ready, capacity=capacity, active=active, unanswered=unanswered))
    assert free >= 0
    if free:
        assert ready
        assert active + free <= capacity
        assert unanswered + free <= UNANSWERED_MAX
