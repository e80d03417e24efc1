"""What counts as a gap, and what was missed in it."""

import pytest

from cronward.schedule.catch_up import Pace
from cronward.scheduler.attention import GAP_MS, STEP_MS, Attention

PACE = Pace(5, 5_000, 120_000)
GRACE_MS = 2_000


@pytest.mark.parametrize(
    ("wall_ms", "mono_ms", "renewed", "step_ms"),
    [
        (1_000, 1_000, False, 0),
        (GAP_MS, GAP_MS, False, 0),
        (GAP_MS + 1, GAP_MS + 1, True, 0),  # the process was stopped
        (1_000 + STEP_MS, 1_000, False, 0),
        (1_001 + STEP_MS, 1_000, True, STEP_MS + 1),  # suspended, or set forward
        (86_400_000, 0, True, 86_400_000),
        (999 - STEP_MS, 1_000, True, -STEP_MS - 1),  # set back
        (-86_400_000, 1_000, True, -86_401_000),
    ],
)
def test_gaps_and_steps(wall_ms: int, mono_ms: int, renewed: bool, step_ms: int) -> None:
    attention = Attention()
    assert attention.look(0, 0, PACE, GRACE_MS) == 0
    queue = attention.queue
    assert attention.look(wall_ms, mono_ms, PACE, GRACE_MS) == step_ms
    assert (attention.queue is not queue) is renewed
    limit_ms = wall_ms if renewed else 0
    assert attention.was_missed(limit_ms - GRACE_MS - 1)
    assert not attention.was_missed(limit_ms - GRACE_MS)


def test_the_first_look_of_a_life_ends_a_gap() -> None:
    attention = Attention()
    attention.look(1_000_000, 0, PACE, GRACE_MS)
    assert attention.was_missed(997_999)
    assert not attention.was_missed(998_000)
    # and what came before it stays missed while the loop goes on
    attention.look(1_001_000, 1_000, PACE, GRACE_MS)
    assert attention.was_missed(997_999)
    assert not attention.was_missed(1_000_500)


def test_after_the_clock_went_back_only_what_lies_before_it_was_missed() -> None:
    attention = Attention()
    attention.look(1_000_000, 0, PACE, GRACE_MS)
    queue = attention.queue
    attention.look(501_000, 1_000, PACE, GRACE_MS)
    assert attention.queue is not queue  # places in the future are no use
    assert attention.was_missed(498_999)
    assert not attention.was_missed(499_000)
    attention.look(502_000, 2_000, PACE, GRACE_MS)
    assert not attention.was_missed(501_500)
