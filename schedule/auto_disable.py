"""When a job is switched off because it goes on failing, and the words for it."""

import enum


class Cause(enum.StrEnum):
    """Why Cronward disabled a job."""

    CONSECUTIVE_FAILURES = "consecutive-failures"
    SCHEDULE_ERRORS = "schedule-errors"


def after_failures(errors: int, disable_after: int, *, recurring: bool) -> bool:
    """`errors` failures in a row, with the last one. Only recurring jobs: a one-shot ends anyway. 0 means never."""
    return recurring and 0 < disable_after <= errors


def after_schedule_errors(errors: int, disable_after: int) -> bool:
    """The next slot could not be computed `errors` times in a row. 0 means never."""
    return 0 < disable_after <= errors


def notice(name: str, cause: Cause, errors: int, problem: str) -> str:
    """What operators are told."""
    label = name if len(name) <= 120 else name[:119] + "…"
    times = "once" if errors == 1 else f"{errors} times in a row"
    what = "failed" if cause is Cause.CONSECUTIVE_FAILURES else "could not be planned"
    why = f"; the last time: {problem}" if problem else ""
    return f"the job {label!r} {what} {times} and was disabled{why}; `cronward enable` starts it again"
