"""Which failures may pass by themselves: the class of a run's end, from its reason, else from its text."""

import enum
import re

from cronward.protocol.outcome import Reason


class Failure(enum.StrEnum):
    """Classes of failures. All but the last can be made transient by configuration; they all are by default."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    NETWORK = "network"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"
    PERMANENT = "permanent"


NOT_THE_JOBS_FAULT = frozenset(
    {Reason.INTERRUPTED, Reason.LAUNCH_LOST, Reason.CANCELLED, Reason.TERMINATED, Reason.ABANDONED}
)
"""Reasons that change no failure counter: the service or a person ended the run, not the job."""

BY_REASON: dict[Reason, Failure] = {
    Reason.EXIT_CODE: Failure.PERMANENT,
    Reason.TIMED_OUT: Failure.TIMEOUT,
    Reason.NO_OUTPUT: Failure.TIMEOUT,
    Reason.SETUP_TIMED_OUT: Failure.TIMEOUT,
    Reason.OUTPUT_LIMIT: Failure.PERMANENT,
    Reason.CWD_MISSING: Failure.PERMANENT,
    Reason.CWD_NOT_DIRECTORY: Failure.PERMANENT,
    Reason.CWD_FORBIDDEN: Failure.PERMANENT,
    Reason.PROGRAM_MISSING: Failure.PERMANENT,
    Reason.PROGRAM_NOT_EXECUTABLE: Failure.PERMANENT,
    Reason.ARGUMENTS_TOO_LONG: Failure.PERMANENT,
    Reason.USER_UNKNOWN: Failure.PERMANENT,
    Reason.USER_FORBIDDEN: Failure.PERMANENT,
    Reason.SECRET_UNAVAILABLE: Failure.PERMANENT,
    Reason.INVALID_SPEC: Failure.PERMANENT,
    Reason.UNKNOWN_KIND: Failure.PERMANENT,
}
"""Reasons that settle it; a reason that is not here (a signal, a failed setup) leaves it to the text."""

_NEAR = r"(?:http|https|status|statuscode|response|api|error|code)"
_TEXTS: tuple[tuple[Failure, re.Pattern[str]], ...] = tuple(
    (failure, re.compile(pattern, re.IGNORECASE))
    for failure, pattern in (
        (
            Failure.RATE_LIMIT,
            r"\b429\b|rate[ _-]?limit(?:ed|ing|s)?\b|too many requests|resource has been exhausted|tokens per day",
        ),
        (
            Failure.OVERLOADED,
            rf"\b{_NEAR}\b\W{{0,12}}529\b|\b529\b\W{{0,12}}{_NEAR}\b|overloaded|high demand|capacity exceeded",
        ),
        (
            Failure.NETWORK,
            r"network|fetch failed|socket|econnreset|econnrefused|eai_again"
            r"|enetdown|ehostunreach|ehostdown|enetreset|enetunreach|epipe",
        ),
        (Failure.TIMEOUT, r"timeout|timed out|stalled before execution start|etimedout"),
        (
            Failure.SERVER_ERROR,
            r"\b5\d\d\b|internal server error|bad gateway|service unavailable|gateway timeout",
        ),
    )
)
TEXT_READ_MAX = 10_000
"""Characters of a text that are looked at."""


def classify(reason: Reason | None, text: str) -> Failure:
    """The class of an error. What nothing speaks for is permanent: repeating it at once would help nobody."""
    if reason in BY_REASON:
        return BY_REASON[reason]
    read = text[:TEXT_READ_MAX]
    return next((failure for failure, pattern in _TEXTS if pattern.search(read)), Failure.PERMANENT)
