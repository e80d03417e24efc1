"""The table of run states is total, and terminal states are terminal."""

import pytest

from cronward.protocol.outcome import Status
from cronward.scheduler.runstate import FINISH, TRANSITIONS, Event, State, Verdict

LIVE = (State.QUEUED, State.ACTIVE)
TERMINAL = (State.OK, State.ERROR, State.SKIPPED)


def test_table_is_total() -> None:
    assert set(TRANSITIONS) == set(State)
    for state, row in TRANSITIONS.items():
        assert set(row) == set(Event), state


@pytest.mark.parametrize("state", TERMINAL)
@pytest.mark.parametrize("event", Event)
def test_nothing_leaves_a_terminal_state(state: State, event: Event) -> None:
    assert isinstance(TRANSITIONS[state][event], Verdict)


@pytest.mark.parametrize("event", Event)
def test_only_activation_makes_a_run_active(event: Event) -> None:
    came_from = [state for state in State if TRANSITIONS[state][event] is State.ACTIVE]
    assert came_from == ([State.QUEUED] if event is Event.ACTIVATE else [])


def test_a_queued_run_can_only_start_or_be_skipped() -> None:
    reached = {then for then in TRANSITIONS[State.QUEUED].values() if isinstance(then, State)}
    assert reached == {State.ACTIVE, State.SKIPPED}


@pytest.mark.parametrize("status", Status)
def test_an_outcome_leads_to_the_state_of_its_status(status: Status) -> None:
    assert TRANSITIONS[State.ACTIVE][FINISH[status]] == State(status)


def test_every_live_state_has_a_way_out_that_needs_no_process() -> None:
    for state in LIVE:
        assert TRANSITIONS[state][Event.ABANDON] in TERMINAL
