"""Stagger: who gets a window, where in it, and that slots with an offset stay strictly later."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.job import Cron
from cronward.schedule.planner import next_slot_ms, settle
from cronward.schedule.stagger import DEFAULT_MS, default_stagger_ms, offset_ms

NIL = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("job_id", "window_ms", "offset"),
    [
        ("job-1", 300_000, 47_897),
        ("daily", 300_000, 94_604),
        (NIL, 300_000, 120_896),
        ("job-1", 60_000, 47_897),
        ("daily", 60_000, 34_604),
        (NIL, 60_000, 896),
        ("job-1", 1, 0),
        ("job-1", 0, 0),
    ],
)
def test_offset_vectors(job_id: str, window_ms: int, offset: int) -> None:
    assert offset_ms(job_id, window_ms) == offset


@pytest.mark.parametrize(
    ("expr", "window_ms"),
    [
        ("0 * * * *", DEFAULT_MS),
        ("0 */2 * * *", DEFAULT_MS),
        ("0 */4,9 * * *", DEFAULT_MS),
        ("0 ? * * *", DEFAULT_MS),
        ("0 0 * * * *", DEFAULT_MS),
        ("0 0 * * * * 2030", DEFAULT_MS),
        ("0 9 * * *", 0),
        ("15 * * * *", 0),
        ("*/5 * * * *", 0),
        ("0,30 * * * *", 0),
        ("30 0 * * * *", 0),
        ("H * * * *", 0),
        ("0 H * * *", 0),
        ("@hourly", 0),
        ("@daily", 0),
    ],
)
def test_only_minute_zero_of_a_starred_hour_is_spread(expr: str, window_ms: int) -> None:
    assert default_stagger_ms(expr) == window_ms
    schedule = settle(Cron(expr, "UTC"), job_id="job-1", now_ms=1_772_000_000_000, default_tz="UTC")
    assert schedule == Cron(expr, "UTC", window_ms)


def test_an_explicit_window_is_kept_and_zero_is_exact() -> None:
    for window_ms in (0, 60_000):
        schedule = settle(Cron("0 * * * *", "UTC", window_ms), job_id="job-1", now_ms=0, default_tz="UTC")
        assert schedule == Cron("0 * * * *", "UTC", window_ms)


def test_the_slot_is_the_plain_one_and_the_offset() -> None:
    schedule = Cron("0 * * * *", "UTC", 300_000)
    assert next_slot_ms(schedule, job_id="job-1", after_ms=3_600_000) == 3_600_000 + 47_897
    assert next_slot_ms(schedule, job_id="job-1", after_ms=3_600_000 + 47_896) == 3_600_000 + 47_897
    assert next_slot_ms(schedule, job_id="job-1", after_ms=3_600_000 + 47_897) == 7_200_000 + 47_897


@given(st.text(max_size=40), st.integers(0, 86_400_000), st.integers(0, 4_000_000_000_000))
def test_every_slot_has_the_same_offset(job_id: str, window_ms: int, after_ms: int) -> None:
    offset = offset_ms(job_id, window_ms)
    assert 0 <= offset < max(1, window_ms)
    slot_ms = next_slot_ms(Cron("0 * * * *", "UTC", window_ms), job_id=job_id, after_ms=after_ms)
    assert slot_ms is not None
    assert after_ms < slot_ms <= after_ms + 3_600_000
    assert (slot_ms - offset) % 3_600_000 == 0
