"""Classes of failures: from the reason where it settles it, else from the text."""

import time

import pytest

from cronward.protocol.outcome import Reason
from cronward.schedule.retry import BY_REASON, NOT_THE_JOBS_FAULT, Failure, classify

SKIPS = {
    Reason.GATEWAY_UNAVAILABLE,
    Reason.DISABLED,
    Reason.REMOVED,
    Reason.RESCHEDULED,
    Reason.CONTEXT_LOST,
    Reason.NOT_DUE,
    Reason.MISSED,
}
BY_TEXT = {Reason.SIGNAL, Reason.SPAWN_FAILED, Reason.SETUP_FAILED, Reason.UNCLASSIFIED}


def test_every_reason_is_thought_of() -> None:
    assert set(Reason) == set(BY_REASON) | NOT_THE_JOBS_FAULT | SKIPS | BY_TEXT


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("HTTP 429", Failure.RATE_LIMIT),
        ("got 429", Failure.RATE_LIMIT),
        ("Rate limit exceeded", Failure.RATE_LIMIT),
        ("you are rate-limited", Failure.RATE_LIMIT),
        ("Too Many Requests", Failure.RATE_LIMIT),
        ("Resource has been exhausted (e.g. quota)", Failure.RATE_LIMIT),
        ("limit of tokens per day reached", Failure.RATE_LIMIT),
        ("status 529", Failure.OVERLOADED),
        ("API error: 529", Failure.OVERLOADED),
        ("the model is temporarily overloaded", Failure.OVERLOADED),
        ("due to high demand", Failure.OVERLOADED),
        ("capacity exceeded", Failure.OVERLOADED),
        ("fetch failed", Failure.NETWORK),
        ("connect ECONNREFUSED 127.0.0.1:1", Failure.NETWORK),
        ("getaddrinfo EAI_AGAIN example.org", Failure.NETWORK),
        ("Network is unreachable", Failure.NETWORK),
        ("socket hang up", Failure.NETWORK),
        ("write EPIPE", Failure.NETWORK),
        ("request timed out", Failure.TIMEOUT),
        ("cron: isolated agent run stalled before execution start", Failure.TIMEOUT),
        ("HTTP 503", Failure.SERVER_ERROR),
        ("502", Failure.SERVER_ERROR),
        ("Internal Server Error", Failure.SERVER_ERROR),
        ("Bad Gateway", Failure.SERVER_ERROR),
        ("command stopped by signal SIGSEGV", Failure.PERMANENT),
        ("invalid api key", Failure.PERMANENT),
        ("HTTP 404", Failure.PERMANENT),
        ("wrote 15032 bytes", Failure.PERMANENT),
        ("", Failure.PERMANENT),
    ],
)
def test_texts(text: str, failure: Failure) -> None:
    assert classify(Reason.SIGNAL, text) is failure
    assert classify(None, text.upper()) is failure


def test_commands() -> None:
    # an exit code is an answer, whatever the text says; a missing program does not come back by itself
    assert classify(Reason.EXIT_CODE, "command exited with code 1: timeout, HTTP 503") is Failure.PERMANENT
    assert classify(Reason.PROGRAM_MISSING, "ENOENT: network") is Failure.PERMANENT
    assert classify(Reason.TIMED_OUT, "command timed out") is Failure.TIMEOUT
    assert classify(Reason.NO_OUTPUT, "command produced no output") is Failure.TIMEOUT
    assert classify(Reason.SIGNAL, "killed: connection reset (ECONNRESET)") is Failure.NETWORK


@pytest.mark.parametrize("text", ["http " * 200_000, "5" * 1_000_000, "rate limi" * 100_000, "status:::::" * 90_000])
def test_hostile_texts_cost_nothing(text: str) -> None:
    began = time.process_time()
    classify(Reason.SIGNAL, text)
    assert time.process_time() - began < 0.05
