"""The handshake's table is total; old words are of the past; silence closes an epoch and settles nothing."""

import typing

import pytest

from cronward.protocol import launch
from cronward.protocol.launch import GatewayState, PoolState
from cronward.scheduler.launcher_link import (
    SETTLING_MS,
    SILENCE_MS,
    STEPS,
    UNANSWERED_LAUNCH_MS,
    LauncherLink,
    LinkState,
    Step,
)
from tests.support.scheduler_bench import IDENTITY, LAUNCHER

MESSAGES = typing.get_args(launch.FromLauncher)
NOW_MS = 50_000


def link_in(state: LinkState) -> LauncherLink:
    link = LauncherLink("here")
    if state is not LinkState.ABSENT:
        link.open_epoch(IDENTITY, LAUNCHER, [], 0)
        link.heard_mono_ms = NOW_MS
    if state is LinkState.READY:
        link.apply_inventory(NOW_MS)
    link.state = state
    return link


def beat(link: LauncherLink, cannot_start: str | None = None) -> launch.Heartbeat:
    return launch.Heartbeat(link.instance, link.epoch, GatewayState.NONE, PoolState(), cannot_start)


def test_table_is_total() -> None:
    assert set(STEPS) == set(LinkState)
    for state, row in STEPS.items():
        assert set(row) == set(MESSAGES), state


def test_facts_are_recorded_in_every_state() -> None:
    for row in STEPS.values():
        for fact in (launch.Accepted, launch.Refused, launch.Exited, launch.Forgotten):
            assert row[fact] is Step.RECORD


@pytest.mark.parametrize("state", LinkState)
def test_a_word_of_another_epoch_or_instance_is_never_taken(state: LinkState) -> None:
    link = link_in(state)
    for instance, epoch in (("here", link.epoch - 1), ("here", link.epoch + 1), ("there", link.epoch)):
        assert link.step(launch.Inventory(instance, epoch, {})) is Step.REGISTER_AGAIN
        old = launch.Heartbeat(instance, epoch, GatewayState.NONE, PoolState())
        assert link.step(old) is Step.REGISTER_AGAIN


def test_only_a_reconciled_launcher_that_can_start_runs_gets_launches() -> None:
    assert [state for state in LinkState if link_in(state).can_launch()] == [LinkState.READY]
    link = link_in(LinkState.READY)
    link.heartbeat = beat(link, cannot_start="no space")
    assert not link.can_launch()
    link.heartbeat = beat(link)
    assert link.can_launch()


def test_each_epoch_is_new_and_asks_about_every_active_run() -> None:
    link = link_in(LinkState.READY)
    link.unanswered["a"] = 1
    link.open_epoch(IDENTITY, LAUNCHER, ["a", "b"], 77)
    assert link.epoch == 2
    assert not link.can_launch()
    assert link.unanswered == {}
    assert link.undecided == {"a", "b"}
    assert link.unverified_since_ms == {"a": 77, "b": 77}
    link.doubt(["a"], 99)
    assert link.unverified_since_ms["a"] == 77  # since when, not until when
    link.vouch("a")
    assert (link.undecided, link.unverified_since_ms) == ({"b"}, {"b": 77})


@pytest.mark.parametrize("state", LinkState)
def test_silence_closes_open_epochs_only(state: LinkState) -> None:
    link = link_in(state)
    assert not link.is_overdue(NOW_MS + SILENCE_MS)
    assert link.is_overdue(NOW_MS + SILENCE_MS + 1) is (state in (LinkState.WELCOMED, LinkState.READY))


def test_an_unanswered_launch_closes_the_epoch_though_the_launcher_speaks() -> None:
    link = link_in(LinkState.READY)
    link.unanswered |= {"old": NOW_MS, "new": NOW_MS + 5_000}
    late = NOW_MS + UNANSWERED_LAUNCH_MS + 1
    link.heard_mono_ms = late
    assert not link.is_overdue(late - 1)
    assert link.is_overdue(late)
    link.answered("old")
    assert not link.is_overdue(late)


def test_a_recovery_is_settled_when_all_is_decided_or_after_a_while() -> None:
    link = link_in(LinkState.READY)
    assert link.is_settled(NOW_MS)
    link.undecided = {"a"}
    assert not link.is_settled(NOW_MS + SETTLING_MS)
    assert link.is_settled(NOW_MS + SETTLING_MS + 1)
    link.close_epoch([], 0)
    assert not link.is_settled(NOW_MS + SETTLING_MS + 1)
