"""Bounds of a proposed next check."""

import pytest

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import At, Every, Pacing
from cronward.schedule.pacing import next_check_ms, settle

EVERY = Every(60_000, 0)


def test_bounds_are_stored_in_ms() -> None:
    assert settle(Pacing("30s", "1h30m"), EVERY) == Pacing(30_000, 5_400_000)
    assert settle(Pacing(500), EVERY) == Pacing(500)
    assert settle(settle(Pacing(max="2m"), EVERY), EVERY) == Pacing(None, 120_000)
    assert settle(None, At("2030-01-01")) is None


@pytest.mark.parametrize(
    ("pacing", "said"),
    [
        (Pacing(), "at least one"),
        (Pacing("soon"), "pacing.min"),
        (Pacing(max=0), "pacing.max"),
        (Pacing(-5), "pacing.min"),
        (Pacing("2m", "1m"), "must not exceed"),
    ],
)
def test_what_is_refused(pacing: Pacing, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        settle(pacing, EVERY)


def test_a_one_shot_has_no_pace() -> None:
    with pytest.raises(InvalidRequest, match="every"):
        settle(Pacing("1m"), At("2030-01-01"))


@pytest.mark.parametrize(
    ("pacing", "proposed_ms", "next_ms"),
    [
        (Pacing(10, 100), 50, 1_050),
        (Pacing(10, 100), 1, 1_010),
        (Pacing(10, 100), 1_000, 1_100),
        (Pacing(10), 1_000, 2_000),
        (Pacing(max=100), 0, 1_000),
    ],
)
def test_a_proposal_is_clamped(pacing: Pacing, proposed_ms: int, next_ms: int) -> None:
    assert next_check_ms(pacing, 1_000, proposed_ms) == next_ms
