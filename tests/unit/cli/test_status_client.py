"""The status client: events follow a snapshot without a gap, whatever is lost in between."""

from collections.abc import Iterator

import msgspec
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol import sockets, status_client
from cronward.protocol.clock import SystemClock
from cronward.protocol.control import Event, Request
from cronward.protocol.paths import Paths
from cronward.protocol.status_client import Follower, Silence, Snapshot, StatusClient, Update
from tests.unit.cli.samples import service_status
from tests.unit.cli.scripted import ScriptedRouter, ok

CLOCK = SystemClock()


def event(seq: int, instance: str = "one") -> Event:
    return Event("tick", instance, seq, msgspec.Raw(b"{}"))


def test_events_before_the_first_snapshot_are_held_and_those_it_covers_are_dropped() -> None:
    follower = Follower()
    assert [follower.on_event(event(seq)) for seq in (4, 5, 6)] == [None, None, None]
    assert [passed.seq for passed in follower.on_snapshot("one", 5)] == [6]
    assert follower.on_event(event(7)) is not None


def test_a_repeated_event_is_dropped() -> None:
    follower = Follower()
    follower.on_snapshot("one", 5)
    assert follower.on_event(event(5)) is None
    assert follower.following


@pytest.mark.parametrize("next_event", [event(7), event(1, "two"), event(6, "two")])
def test_a_gap_or_a_new_instance_ends_following(next_event: Event) -> None:
    follower = Follower()
    follower.on_snapshot("one", 5)
    assert follower.on_event(next_event) is None
    assert not follower.following


def test_events_of_a_predecessor_do_not_follow_a_snapshot_of_its_successor() -> None:
    follower = Follower()
    follower.on_event(event(9, "one"))
    follower.on_event(event(2, "two"))
    assert [passed.seq for passed in follower.on_snapshot("two", 1)] == [2]
    assert follower.following


def test_a_gap_among_held_events_is_seen() -> None:
    follower = Follower()
    for seq in (3, 4, 6):
        follower.on_event(event(seq))
    assert [passed.seq for passed in follower.on_snapshot("one", 2)] == [3, 4]
    assert not follower.following


@given(st.lists(st.sampled_from(["emit", "lose", "snapshot", "restart"]), max_size=60))
def test_what_is_passed_on_is_always_gapless_after_a_snapshot(steps: list[str]) -> None:
    """A model scheduler emits, a lossy wire loses, snapshots come at any time: what a dashboard sees is contiguous."""
    follower = Follower()
    instance, seq = 1, 0
    seen: tuple[str, int] | None = None
    for step in steps:
        passed: list[Event] = []
        match step:
            case "emit":
                seq += 1
                one = follower.on_event(event(seq, str(instance)))
                passed = [one] if one is not None else []
            case "lose":
                seq += 1
            case "restart":
                instance, seq = instance + 1, 0
            case _:
                seen = (str(instance), seq)
                passed = follower.on_snapshot(*seen)
        for each in passed:
            assert seen == (each.instance, each.seq - 1)
            seen = (each.instance, each.seq)


class Stage:
    """A scheduler's status side: publishes what it is told, answers snapshots with the present sequence."""

    def __init__(self, paths: Paths, query: ScriptedRouter) -> None:
        self.instance, self.seq = "one", 0
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._publisher = sockets.publisher(self._context, str(paths.events))
        query.start(self._answer)

    def _answer(self, request: Request) -> list[bytes]:
        assert request.method == "status.snapshot"
        view = {
            "instance": self.instance,
            "seq": self.seq,
            "service": msgspec.to_builtins(service_status()),
            "live": [],
            "nextSlots": [],
        }
        return [ok(request, view)]

    def publish(self, *, lost: bool = False) -> None:
        self.seq += 1
        if not lost:
            self._publisher.send(msgspec.json.encode(event(self.seq, self.instance)))

    def publish_garbage(self) -> None:
        self._publisher.send(b"\xff{")

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture
def stage(paths: Paths, query: ScriptedRouter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(status_client, "ASK_AGAIN_MS", 50)
    made = Stage(paths, query)
    yield made
    made.close()


@pytest.fixture
def client(paths: Paths) -> Iterator[StatusClient]:
    with StatusClient(paths, CLOCK) as made:
        yield made


def follow(client: StatusClient, stage: Stage) -> None:
    """Waits until the client has its first snapshot and hears the stage."""
    assert isinstance(client.wait(5_000), Snapshot)
    while True:  # a subscription takes a moment to arrive; what was published before it is a gap
        stage.publish()
        update = client.wait(200)
        if isinstance(update, Event) and update.seq == stage.seq:
            return


def until_snapshot(client: StatusClient) -> Snapshot:
    updates: list[Update | None] = []
    for _ in range(50):
        updates.append(client.wait(1_000))
        if isinstance(updates[-1], Snapshot):
            return updates[-1]
    raise AssertionError(f"no snapshot came, but {updates}")


def test_events_follow_the_snapshot(client: StatusClient, stage: Stage) -> None:
    follow(client, stage)
    stage.publish()
    update = client.wait(1_000)
    assert isinstance(update, Event)
    assert update.seq == stage.seq


def test_a_lost_event_brings_a_new_snapshot(client: StatusClient, stage: Stage) -> None:
    follow(client, stage)
    stage.publish(lost=True)
    stage.publish()
    assert until_snapshot(client).view.seq == stage.seq


def test_a_new_instance_brings_a_new_snapshot(client: StatusClient, stage: Stage) -> None:
    follow(client, stage)
    stage.instance, stage.seq = "two", 0
    stage.publish()
    assert until_snapshot(client).view.instance == "two"


def test_an_unreadable_event_counts_as_a_gap(client: StatusClient, stage: Stage) -> None:
    follow(client, stage)
    stage.publish_garbage()
    assert until_snapshot(client).view.seq == stage.seq


def test_silence_is_told_and_ends_with_a_snapshot(
    client: StatusClient, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_client, "SILENCE_MS", 400)
    follow(client, stage)
    assert isinstance(client.wait(2_000), Silence)
    assert isinstance(client.wait(2_000), Snapshot)


def test_a_scheduler_that_is_not_there_is_silence(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_client, "SILENCE_MS", 100)
    with StatusClient(paths, CLOCK) as client:
        assert isinstance(client.wait(2_000), Silence)
        assert client.wait(300) is None
