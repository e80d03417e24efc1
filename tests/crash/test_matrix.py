"""The crash matrix: every failpoint × every action × every victim, with real processes, against the table of windows.

The suite plays a selection that covers every point, chosen by the seed that pytest-randomly prints (repeat it with
`-p randomly --randomly-seed=N`); `make matrix` plays every cell.
"""

import os
import random
import tempfile
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.cli.torture_round import Bench, Result
from cronward.cli.torture_windows import ROWS, WITHOUT_POINT, Action, Cell, Victims, cells, impossible
from cronward.protocol import launch, pair, run
from cronward.protocol.clock import SystemClock
from cronward.protocol.failpoints import WINDOWS
from tests.support import sidelog

WHOLE = os.environ.get("CRONWARD_TEST_MATRIX") == "all"
SELECTED = 34
FRESH_AFTER = 50


def selection(seed: int) -> list[Cell]:
    """One cell of each point, and any others up to SELECTED."""
    rng = random.Random(seed)
    everything = [cell for point in WINDOWS for cell in cells(point)]
    if WHOLE:
        return everything
    chosen = [rng.choice(list(cells(point))) for point in WINDOWS]
    others = [cell for cell in everything if cell not in chosen]
    return chosen + rng.sample(others, SELECTED - len(chosen))


def seed_of(config: pytest.Config) -> int:
    return int(config.getoption("randomly_seed"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" in metafunc.fixturenames:
        metafunc.parametrize("cell", selection(seed_of(metafunc.config)), ids=str)


class Stand:
    """Plays cells in one installation after the other; one that broke a rule is not used again."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._bench: Bench | None = None

    def play(self, cell: Cell) -> Result:
        rng = random.Random(f"{self._seed}:{cell}")
        if self._bench is None:
            root = Path(tempfile.mkdtemp(prefix="cw-")) / "i"
            self._bench = Bench(root, SystemClock(), rng, cell, program=sidelog.program())
        result = self._bench.play(cell, cell, rng)
        if result.violations or not result.injected or self._bench.rounds >= FRESH_AFTER:
            self.close()
        return result

    def close(self) -> None:
        if self._bench is not None:
            self._bench.close()
            self._bench.scratch.root.parent.rmdir()
            self._bench = None


@pytest.fixture(scope="module")
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    made = Stand(seed_of(request.config))
    try:
        yield made
    finally:
        made.close()


def test_cell(stand: Stand, cell: Cell) -> None:
    result = stand.play(cell)
    assert result.violations == []
    assert result.injected, "the load never reached the point"


# nothing is left out


def test_every_point_has_its_row() -> None:
    assert list(ROWS) == list(WINDOWS)


def test_every_window_has_a_point_or_a_reason_to_have_none() -> None:
    with_point = set(WINDOWS.values())
    assert with_point | set(WITHOUT_POINT) == {str(number) for number in range(1, 15)}
    assert not with_point & set(WITHOUT_POINT)


@pytest.mark.parametrize("seed", range(20))
def test_the_selection_covers_every_point(seed: int) -> None:
    assert {cell.point for cell in selection(seed)} == set(WINDOWS)


def test_every_cell_is_played_or_impossible_for_a_reason() -> None:
    for point in WINDOWS:
        every = {Cell(point, action, victims) for action in Action for victims in Victims}
        assert {cell for cell in every if impossible(cell)} == every - set(cells(point))


BOUNDARIES: dict[type, set[str]] = {
    launch.Launch: {"scheduler.after_active_commit", "launcher.after_receive", "launcher.after_publish"},
    pair.HandOver: {"launcher.after_publish", "launcher.after_hand_over", "executor.before_start"},
    launch.Accepted: {"launcher.after_hand_over"},
    run.Report: {"executor.after_outcome_saved", "executor.after_outcome_sent", "scheduler.before_outcome_commit"},
    run.Recorded: {"scheduler.after_outcome_commit", "executor.after_ack"},
    pair.Free: {"executor.before_free"},
    launch.Exited: {"launcher.before_exited", "scheduler.before_outcome_commit"},
    launch.Ack: {"scheduler.after_outcome_commit"},
}
"""Messages that carry a fact about a run from one process to another, and the points around each."""

NO_FACT: dict[type, str] = {
    launch.Register: "repeated until answered",
    launch.Welcome: "a question about runs; the answer is the inventory",
    launch.Inventory: "repeated until answered; what it says is looked up anew each time",
    launch.Reconciled: "answer to the inventory, given again when it is repeated",
    launch.Refused: "a launcher that dies has no trace of the run either",
    launch.Heartbeat: "repeated",
    launch.Beat: "repeated",
    launch.Leaving: "given up after two seconds; the next launcher registers",
    launch.Left: "answer to Leaving",
    launch.RegisterAgain: "repeated at the next word",
    launch.Cancel: "repeated until the run is terminal",
    launch.Forget: "repeated until the run is forgotten",
    launch.Forgotten: "answered again when it is asked again",
    launch.Configure: "given again with each Welcome",
    pair.CancelRun: "repeated until the run is terminal",
    pair.Ready: "of an executor without a run",
    pair.Unfit: "of an executor without a run",
    run.Hello: "repeated",
    run.HelloAnswer: "given again to each hello",
    run.Progress: "kept in memory only",
}


def messages() -> set[type]:
    unions = (
        launch.FromLauncher,
        launch.ToLauncher,
        pair.FromExecutor,
        pair.ToExecutor,
        run.FromExecutor,
        run.ToExecutor,
    )
    return {kind for union in unions for kind in typing.get_args(union)}


def test_every_message_between_processes_has_its_points_or_carries_nothing_that_can_be_lost() -> None:
    assert messages() == BOUNDARIES.keys() | NO_FACT.keys()
    assert not BOUNDARIES.keys() & NO_FACT.keys()
    assert set().union(*BOUNDARIES.values()) <= set(WINDOWS)


def test_every_point_is_at_a_boundary() -> None:
    inside = {
        "scheduler.before_request_commit": "the due decision",
        "scheduler.after_request_commit": "queued, nobody was told",
        "executor.during_task": "between the executor and its task",
        "executor.after_task": "between the executor and its task",
        "scheduler.before_notify": "between the ledger and the log",
    }
    assert set(WINDOWS) == set().union(*BOUNDARIES.values()) | inside.keys()
