"""Delays after failures, and where their numbers come from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.config import RetryConfig
from cronward.protocol.job import Retry
from cronward.schedule import auto_disable
from cronward.schedule.backoff import PRESETS, backoff_ms, retry_delay_ms, rules
from cronward.schedule.retry import Failure

DEFAULT = rules(RetryConfig(), None)


def test_the_ladder() -> None:
    assert [backoff_ms(DEFAULT, errors) for errors in range(1, 8)] == [
        30_000,
        60_000,
        300_000,
        900_000,
        3_600_000,
        3_600_000,
        3_600_000,
    ]


def test_three_quick_retries_of_what_may_pass() -> None:
    delays = [retry_delay_ms(DEFAULT, Failure.NETWORK, errors, "run") for errors in range(1, 6)]
    assert delays == [30_000, 60_000, 300_000, None, None]
    assert all(retry_delay_ms(DEFAULT, Failure.PERMANENT, errors, "run") is None for errors in range(1, 5))


@given(st.text(), st.integers(1, 3))
def test_goclaw_doubles_with_jitter(seed: str, errors: int) -> None:
    numbers = rules(RetryConfig(), Retry(preset="goclaw"))
    delay_ms = retry_delay_ms(numbers, Failure.TIMEOUT, errors, seed)
    middle_ms = 1000 * 2**errors
    assert delay_ms is not None
    assert 0.75 * middle_ms <= delay_ms <= 1.25 * middle_ms
    assert delay_ms == retry_delay_ms(numbers, Failure.TIMEOUT, errors, seed)
    assert retry_delay_ms(numbers, Failure.TIMEOUT, 4, seed) is None


def test_goclaw_is_spread_and_ends_at_thirty_seconds() -> None:
    numbers = rules(RetryConfig(), Retry(preset="goclaw", max_retries=20))
    delays = [retry_delay_ms(numbers, Failure.TIMEOUT, 1, str(number)) or 0 for number in range(1000)]
    assert min(delays) < 1_600 < 2_400 < max(delays)
    assert (retry_delay_ms(numbers, Failure.TIMEOUT, 20, "x") or 0) <= 37_500


def test_the_job_wins_over_the_configuration_over_the_preset() -> None:
    config = RetryConfig(delays_s=(7,), max_retries=9, backoff_s=(1, 2), disable_after=0, transient=("network",))
    general = rules(config, None)
    assert (general.delays_ms, general.max_retries, general.ladder_ms) == ((7_000,), 9, (1_000, 2_000))
    assert general.transient == {Failure.NETWORK}
    own = rules(config, Retry(max_retries=0, backoff_seconds=(5,), disable_after=3, transient=("timeout",)))
    assert (own.delays_ms, own.max_retries, own.ladder_ms, own.disable_after) == ((7_000,), 0, (5_000,), 3)
    assert own.transient == {Failure.TIMEOUT}
    assert retry_delay_ms(own, Failure.TIMEOUT, 1, "") is None
    named = rules(config, Retry(preset="goclaw"))
    assert (named.max_retries, named.jitter) == (PRESETS["goclaw"].max_retries, 0.25)


@pytest.mark.parametrize(
    ("errors", "limit", "recurring", "off"),
    [(9, 10, True, False), (10, 10, True, True), (11, 10, True, True), (10, 10, False, False), (99, 0, True, False)],
)
def test_auto_disable(errors: int, limit: int, recurring: bool, off: bool) -> None:
    assert auto_disable.after_failures(errors, limit, recurring=recurring) is off


def test_the_notice_names_the_job_and_what_to_do() -> None:
    text = auto_disable.notice("n" * 500, auto_disable.Cause.CONSECUTIVE_FAILURES, 10, "exit status 1")
    assert "failed 10 times in a row" in text
    assert "exit status 1" in text
    assert "cronward enable" in text
    assert len(text) < 300
