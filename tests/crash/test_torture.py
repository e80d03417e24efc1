"""`cronward torture` itself: it finds what breaks a promise, refuses other people's directories, and leaves nothing."""

import os
import random
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from cronward.cli.torture_report import Report
from cronward.cli.torture_round import Bench, Result
from cronward.cli.torture_windows import Action, Cell, Victims
from cronward.protocol import exits
from cronward.protocol.clock import SystemClock
from tests.support import sidelog
from tests.support.processes import belonging_to
from tests.support.waiting import wait_until

CELL = Cell("executor.after_outcome_saved", Action.KILL, Victims.EXECUTOR)
COMMAND = (sys.executable, "-c", "import sys; from cronward.cli.main import main; sys.exit(main(sys.argv[1:]))")
TRUE_PROGRAM = shlex.join(sidelog.program())


def torture(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short path, since that of a socket holds 107 bytes."""
    path = Path("/tmp") / f"cw-torture-{os.getpid()}"
    yield path
    assert not belonging_to(path)


def play(root: Path, program: Sequence[str]) -> Result:
    rng = random.Random(1)
    bench = Bench(root, SystemClock(), rng, CELL, program=program)
    try:
        return bench.play(CELL, CELL, rng)
    finally:
        bench.close()


def test_the_command_reports_in_json_and_leaves_nothing(root: Path) -> None:
    done = torture(
        "--state", str(root), "torture", "--rounds", "2", "--points", "executor.after_task,3", "--fork", "--json"
    )
    assert done.returncode == exits.OK, done
    report = msgspec.json.decode(done.stdout, type=Report)
    assert (report.rounds, report.injected, report.lost, report.repeated, report.violations) == (2, 2, 0, 0, 0)
    assert {window.point for window in report.windows} == {"executor.after_task", "scheduler.after_active_commit"}
    assert f"seed {report.seed}" in done.stderr
    assert report.runs > 2
    assert not root.exists()


def test_a_directory_that_holds_anything_is_refused(root: Path) -> None:
    root.mkdir()
    database = root / "cronward.db"
    database.write_text("somebody's")
    done = torture("--state", str(root), "torture", "--rounds", "1")
    assert done.returncode == exits.ERROR
    assert "is not empty" in done.stderr
    assert os.listdir(root) == ["cronward.db"]
    database.unlink()
    root.rmdir()


def test_an_unknown_point_is_refused() -> None:
    done = torture("torture", "--points", "executor.lunch")
    assert done.returncode == exits.USAGE
    assert "executor.lunch" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_interrupted_leaves_no_process_and_goes_on_later(
    root: Path, tmp_path: Path, number: signal.Signals
) -> None:
    journal = tmp_path / "journal"
    command = (*COMMAND, "--state", str(root), "torture", "--seed", "5", "--points", "4", "--resume", str(journal))
    with subprocess.Popen((*command, "--rounds", "4"), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: journal.exists() and len(journal.read_bytes().splitlines()) == 2, "a round was played", 60)
        process.send_signal(number)
        assert process.wait(90) == exits.INTERRUPTED
    assert not belonging_to(root)
    played = len(journal.read_bytes().splitlines()) - 1
    assert 1 <= played < 4
    done = subprocess.run((*command, "--rounds", "4", "--json"), capture_output=True, check=True)
    assert msgspec.json.decode(done.stdout, type=Report).rounds == 4


@pytest.mark.parametrize(
    ("script", "broken"),
    [
        (f'{TRUE_PROGRAM} "$@"; {TRUE_PROGRAM} "$@"', "began 2 times"),
        ("exit 0", "did not come to its end"),
        (f'{TRUE_PROGRAM} "$@"; exit 3', "which nothing done to it explains"),
    ],
    ids=["repeats", "does nothing", "fails"],
)
def test_a_broken_promise_is_found(root: Path, script: str, broken: str) -> None:
    """Commands that cheat look exactly like a service that does."""
    result = play(root, ("sh", "-c", script, "sh"))
    assert any(broken in violation for violation in result.violations), result
