"""The table of a run is total, and a run whose outcome nobody acknowledges is let go in the end."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from cronward.executor.command import Launchpad
from cronward.executor.lifecycle import TABLE, Released, Run, Tools
from cronward.executor.loop import Loop
from cronward.executor.phases import Event, Phase
from cronward.executor.reporter import Reporter
from cronward.protocol import job, outcome, rundir
from cronward.protocol.identity import own_identity
from cronward.protocol.outcome import Reason
from cronward.protocol.pair import HandOver
from cronward.protocol.run import OUTCOME_HOLD_MS, OUTCOME_RESEND_MS
from cronward.protocol.sockets import dealer


class ManualClock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def mono_ms(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def tools(tmp_path: Path, clock: ManualClock) -> Iterator[Tools]:
    """Everything real but the clock; no scheduler listens."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    reporter = Reporter(dealer(context, str(tmp_path / "run.sock"), 1 << 16), clock, os.getpid())
    working_directory = Path.cwd()
    yield Tools(Loop(), clock, reporter, Launchpad(os.environb))
    os.chdir(working_directory)
    reporter.close()
    context.term()


def failing_run(tmp_path: Path, tools: Tools, *, saving: bool = True) -> Run:
    """A run that has failed to start, and waits to be acknowledged. Without `saving` its outcome meets an obstacle."""
    directory = tmp_path / "run"
    directory.mkdir()
    if not saving:
        (directory / rundir.OUTCOME_NEW).mkdir()
    definition = job.Definition("test", job.Every(every_ms=1000), job.Command(["/nowhere/program"]))
    limits = rundir.Limits(0, 0, 0, 0, 0, 0)
    intent = rundir.Intent("run", "manual", job.encode(definition), limits, own_identity(), None, "/bin")
    (directory / rundir.INTENT).write_bytes(rundir.encode_intent(intent))
    lock_fd = os.open(directory / rundir.LOCK, os.O_RDWR | os.O_CREAT)
    run = Run(HandOver("run", str(directory), "secret"), lock_fd, tools)
    run.begin()
    return run


def pass_time(run: Run, clock: ManualClock, until_ms: int) -> None:
    """Lets the run act on each of its deadlines, in order."""
    while run.released is None and (next_ms := run.deadlines.next_ms()) is not None and next_ms <= until_ms:
        clock.now_ms = next_ms
        due = run.deadlines.pop_due(next_ms)
        assert due is not None
        run.handle(due)
    clock.now_ms = until_ms


def released(run: Run) -> Released | None:
    return run.released


def test_every_event_has_a_handler_in_every_phase() -> None:
    assert set(TABLE) == set(Phase)
    for phase, row in TABLE.items():
        assert set(row) == set(Event), phase


def test_an_event_that_cannot_happen_is_a_bug(tmp_path: Path, tools: Tools) -> None:
    run = failing_run(tmp_path, tools)
    with pytest.raises(RuntimeError, match="phase reporting"):
        run.handle(Event.TIMEOUT_DUE)


def test_an_outcome_nobody_acknowledges_is_held_for_ten_minutes(
    tmp_path: Path, tools: Tools, clock: ManualClock
) -> None:
    begun_ms = clock.now_ms
    run = failing_run(tmp_path, tools)
    assert run.phase is Phase.REPORTING
    pass_time(run, clock, begun_ms + OUTCOME_HOLD_MS - 1)
    assert released(run) is None
    pass_time(run, clock, begun_ms + OUTCOME_HOLD_MS)
    assert released(run) == Released("run", acknowledged=False, clean=True)
    body = rundir.unseal((tmp_path / "run" / rundir.OUTCOME).read_bytes(), rundir.OUTCOME)
    assert outcome.decode(body).reason is Reason.PROGRAM_MISSING


def test_an_outcome_that_cannot_be_saved_holds_the_lock_until_it_is_acknowledged(
    tmp_path: Path, tools: Tools, clock: ManualClock
) -> None:
    run = failing_run(tmp_path, tools, saving=False)
    pass_time(run, clock, clock.now_ms + 3 * OUTCOME_HOLD_MS)
    assert released(run) is None
    run.handle(Event.RECORDED)
    assert released(run) == Released("run", acknowledged=True, clean=True)


def test_an_outcome_is_synced_once_and_only_when_nobody_acknowledged_it(
    tmp_path: Path, tools: Tools, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    run = failing_run(tmp_path, tools)
    begun_ms = clock.now_ms
    pass_time(run, clock, begun_ms + OUTCOME_RESEND_MS - 1)
    assert synced == []
    pass_time(run, clock, begun_ms + 5 * OUTCOME_RESEND_MS)
    assert synced == [str(tmp_path / "run" / rundir.OUTCOME), str(tmp_path / "run")]


@pytest.mark.parametrize("event", [Event.CANCEL, Event.TERMINATE, Event.CHILD_ENDED, Event.CONNECTED])
def test_what_comes_too_late_changes_nothing(tmp_path: Path, tools: Tools, event: Event) -> None:
    run = failing_run(tmp_path, tools)
    before = (tmp_path / "run" / rundir.OUTCOME).read_bytes()
    run.handle(event)
    assert run.phase is Phase.REPORTING
    assert (tmp_path / "run" / rundir.OUTCOME).read_bytes() == before
