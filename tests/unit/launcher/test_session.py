"""The handshake's table."""

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.launcher.session import REPEATS, TABLE, Order, Say, Session, State
from cronward.protocol import launch
from cronward.protocol.launch import LauncherConfig
from cronward.protocol.rundir import Limits

CONFIG = LauncherConfig(1, 2, 4, 500)


def launch_of(instance: str, epoch: int) -> launch.Launch:
    return launch.Launch(instance, epoch, "run", "slot", b"{}", Limits(1, 0, 1, 1, 1, 1), "", "")


def welcome(instance: str, epoch: int) -> launch.Welcome:
    return launch.Welcome(instance, epoch, CONFIG, [])


def assert_state(session: Session, state: State) -> None:
    assert session.state is state


def reconciled() -> Session:
    session = Session()
    session.receive(welcome("one", 1), 0)
    session.receive(launch.Reconciled("one", 1), 0)
    assert_state(session, State.RECONCILED)
    return session


def test_the_table_is_total() -> None:
    messages = typing.get_args(launch.ToLauncher)
    assert set(TABLE) == {(state, message) for state in State for message in messages}
    assert set(REPEATS) == set(State)


def test_register_then_inventory_then_heartbeats() -> None:
    session = Session()
    assert session.due(0) == [Say.REGISTER]
    assert session.due(499) == []
    assert session.due(500) == [Say.REGISTER]
    assert session.receive(welcome("one", 1), 600) is Order.ENTER_EPOCH
    assert session.due(600) == [Say.INVENTORY, Say.HEARTBEAT]
    session.receive(launch.Reconciled("one", 1), 700)
    assert session.due(700) == [Say.HEARTBEAT]


@pytest.mark.parametrize("stale", [("one", 0), ("two", 1)])
def test_only_launches_of_this_very_epoch_are_taken(stale: tuple[str, int]) -> None:
    session = reconciled()
    assert session.receive(launch_of("one", 1), 0) is Order.ACCEPT_LAUNCH
    assert session.receive(launch_of(*stale), 0) is Order.REFUSE_STALE


def test_before_the_first_welcome_every_launch_is_stale() -> None:
    assert Session().receive(launch_of("one", 1), 0) is Order.REFUSE_STALE


def test_a_reconciled_of_an_older_epoch_changes_nothing() -> None:
    session = Session()
    session.receive(welcome("one", 1), 0)
    session.receive(welcome("one", 2), 0)
    session.receive(launch.Reconciled("one", 1), 0)
    assert_state(session, State.INVENTORY)


def test_silence_of_three_intervals_starts_over() -> None:
    session = reconciled()
    session.receive(launch.Beat("one", 1), 1000)
    session.due(6999)
    assert_state(session, State.RECONCILED)
    assert session.due(7000) == [Say.REGISTER]


def test_a_new_connection_is_greeted_at_once() -> None:
    session = reconciled()
    assert session.due(10) == [Say.HEARTBEAT]
    assert session.due(20) == []
    session.connected()
    assert session.due(30) == [Say.HEARTBEAT]
    session.receive(launch.RegisterAgain(), 40)
    assert session.due(40) == [Say.REGISTER]


def test_leaving_waits_two_seconds_for_its_answer() -> None:
    session = reconciled()
    session.stop(1000)
    assert session.due(1000) == [Say.LEAVING]
    assert session.receive(launch_of("one", 1), 1500) is Order.ACCEPT_LAUNCH
    session.due(2999)
    assert_state(session, State.LEAVING)
    session.due(3000)
    assert_state(session, State.LEFT)
    assert session.receive(launch_of("one", 1), 3000) is Order.REFUSE_LEAVING


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(("one", "two")), st.integers(0, 3)).map(lambda epoch: welcome(*epoch)),
            st.tuples(st.sampled_from(("one", "two")), st.integers(0, 3)).map(lambda epoch: launch_of(*epoch)),
            st.tuples(st.sampled_from(("one", "two")), st.integers(0, 3)).map(lambda epoch: launch.Beat(*epoch)),
            st.just(launch.RegisterAgain()),
        )
    )
)
def test_whatever_comes_only_the_last_entered_epoch_launches(messages: list[launch.ToLauncher]) -> None:
    session, entered = Session(), ("", 0)
    for message in messages:
        order = session.receive(message, 0)
        if order is Order.ENTER_EPOCH:
            assert isinstance(message, launch.Welcome)
            assert message.instance != entered[0] or message.epoch > entered[1]
            entered = (message.instance, message.epoch)
        if isinstance(message, launch.Launch):
            assert (order is Order.ACCEPT_LAUNCH) is ((message.instance, message.epoch) == entered)
