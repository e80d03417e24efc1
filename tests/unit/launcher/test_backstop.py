"""When the launcher steps in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.launcher.backstop import HOLD_MS, SLACK_MS, Action, decide, must_look
from cronward.launcher.live import LiveRun

LATE_MS = 1000 + SLACK_MS


def run(**fields: int | None) -> LiveRun:
    live = LiveRun("run", "/d", None, 1000, grace_ms=10, cleanup_ms=20)
    for name, value in fields.items():
        setattr(live, name, value)
    return live


@pytest.mark.parametrize(
    ("live", "over", "saved", "own", "now_ms", "action"),
    [
        (run(), False, False, True, LATE_MS - 1, Action.WAIT),
        (run(), False, False, True, LATE_MS, Action.TERMINATE),
        (run(terminated_ms=LATE_MS), False, False, True, LATE_MS + 29, Action.WAIT),
        (run(terminated_ms=LATE_MS), False, False, True, LATE_MS + 30, Action.KILL),
        (run(), True, True, False, LATE_MS, Action.REPORT),
        (run(), True, False, True, LATE_MS, Action.WAIT),
        (run(reported_ms=LATE_MS), True, True, True, LATE_MS + HOLD_MS - 1, Action.WAIT),
        (run(reported_ms=LATE_MS), True, True, True, LATE_MS + HOLD_MS, Action.END),
        (run(reported_ms=LATE_MS), True, True, False, LATE_MS + HOLD_MS, Action.WAIT),
        (run(deadline_ms=None), False, False, True, 10**9, Action.WAIT),
        (run(deadline_ms=None), True, False, True, 0, Action.SET_DEADLINE),
        (run(deadline_ms=None, cancel_ms=500), False, False, True, 509 + SLACK_MS, Action.WAIT),
        (run(deadline_ms=None, cancel_ms=500), False, False, True, 510 + SLACK_MS, Action.TERMINATE),
        (run(deadline_ms=10**9, cancel_ms=500), False, False, True, 510 + SLACK_MS, Action.TERMINATE),
    ],
)
def test_decide(live: LiveRun, over: bool, saved: bool, own: bool, now_ms: int, action: Action) -> None:
    assert decide(live, over=over, saved=saved, own=own, now_ms=now_ms) is action


@given(
    st.builds(
        run,
        deadline_ms=st.none() | st.integers(0, 10**6),
        cancel_ms=st.none() | st.integers(0, 10**6),
        terminated_ms=st.none() | st.integers(0, 10**6),
        reported_ms=st.none() | st.integers(0, 10**6),
    ),
    st.booleans(),
    st.booleans(),
    st.integers(0, 10**7),
)
def test_an_executor_with_an_unsaved_outcome_gets_no_signal(live: LiveRun, over: bool, own: bool, now_ms: int) -> None:
    action = decide(live, over=over, saved=False, own=own, now_ms=now_ms)
    if over:
        assert action in (Action.WAIT, Action.SET_DEADLINE)
    if action is not Action.WAIT:
        assert must_look(live, now_ms)
