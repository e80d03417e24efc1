"""When the launcher has to end what an executor should have ended. A pure decision; executors keep their own deadlines.

An executor with an unsaved outcome is never ended: its memory is the only copy.
"""

import enum

from cronward.launcher.live import LiveRun

SLACK_MS = 30_000
"""An executor has this long after its last deadline, or after a cancel's grace."""

HOLD_MS = 10 * 60 * 1000
"""An own executor may go on holding a run this long after its saved outcome was reported from the directory."""


class Action(enum.Enum):
    WAIT = "wait"
    SET_DEADLINE = "set_deadline"
    """A run without a deadline is over: from now on its executor has `cleanup_ms`."""
    TERMINATE = "terminate"
    """SIGTERM: the executor ends its task and saves an outcome."""
    KILL = "kill"
    """SIGKILL: it did not."""
    REPORT = "report"
    """Report the saved outcome although the lock is held."""
    END = "end"
    """SIGKILL to an own executor that stays although its outcome is saved and reported."""


def must_look(live: LiveRun, now_ms: int) -> bool:
    """Whether the run directory has to be read to decide. Cheap: asked of each run each second."""
    limits_ms = _limits_ms(live)
    return live.deadline_ms is None or any(now_ms >= limit_ms for limit_ms in limits_ms)


def decide(live: LiveRun, *, over: bool, saved: bool, own: bool, now_ms: int) -> Action:
    """`over` is the lock's byte, `saved` whether a valid outcome is in the directory."""
    limits_ms = _limits_ms(live)
    if over and live.deadline_ms is None:
        return Action.SET_DEADLINE
    if not any(now_ms >= limit_ms for limit_ms in limits_ms):
        return Action.WAIT
    if over:
        return _decide_over(live, saved=saved, own=own, now_ms=now_ms)
    if live.terminated_ms is None:
        return Action.TERMINATE
    return Action.KILL if now_ms >= live.terminated_ms + live.grace_ms + live.cleanup_ms else Action.WAIT


def _decide_over(live: LiveRun, *, saved: bool, own: bool, now_ms: int) -> Action:
    if not saved:
        return Action.WAIT
    if live.reported_ms is None:
        return Action.REPORT
    return Action.END if own and now_ms >= live.reported_ms + HOLD_MS else Action.WAIT


def _limits_ms(live: LiveRun) -> list[int]:
    limits_ms = []
    if live.deadline_ms is not None:
        limits_ms.append(live.deadline_ms + SLACK_MS)
    if live.cancel_ms is not None:
        limits_ms.append(live.cancel_ms + live.grace_ms + SLACK_MS)
    return limits_ms
