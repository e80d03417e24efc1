"""Locks, intents and outcomes, on real files."""

import fcntl
import os
from pathlib import Path

import msgspec
import pytest

from cronward.launcher.judgement import Absent, Free, Held, Verdict, is_over, judge, read_intent
from cronward.launcher.run_directories import RunDirectories
from cronward.protocol import identity, outcome, rundir
from cronward.protocol.rundir import Intent, Limits

INTENT = Intent(
    "run", "slot", b"{}", Limits(1, 0, 1, 1, 1, 1), identity.ProcessIdentity(1, 2, "boot"), None, "/bin", False
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A published directory whose lock nobody holds."""
    built = RunDirectories(str(tmp_path)).publish(INTENT)
    os.close(built.lock_fd)
    return Path(built.path)


def freed(verdict: Verdict) -> Free:
    assert isinstance(verdict, Free)
    assert verdict.lock_fd is not None
    os.close(verdict.lock_fd)
    return verdict


def save(directory: Path, run: str = "run") -> bytes:
    body = outcome.encode(outcome.Outcome(run, outcome.Status.OK, None, "", 1, 2, 1))
    (directory / rundir.OUTCOME).write_bytes(rundir.seal(body))
    return body


def test_absent(tmp_path: Path) -> None:
    assert isinstance(judge(str(tmp_path / "none"), "run"), Absent)


def test_held_by_any_description_of_the_file(directory: Path) -> None:
    with (directory / rundir.LOCK).open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert isinstance(judge(str(directory), "run"), Held)
    assert freed(judge(str(directory), "run")).problem == "no outcome was saved"


def test_the_verdict_keeps_the_lock(directory: Path) -> None:
    verdict = judge(str(directory), "run")
    assert isinstance(judge(str(directory), "run"), Held)
    freed(verdict)


def test_a_valid_outcome_is_found(directory: Path) -> None:
    body = save(directory)
    verdict = freed(judge(str(directory), "run"))
    assert (verdict.outcome, verdict.intent) == (body, INTENT)


def test_an_outcome_of_another_run_counts_as_none(directory: Path) -> None:
    save(directory, "another")
    assert freed(judge(str(directory), "run")).outcome is None


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_cut_outcome_counts_as_none(directory: Path, cut: int) -> None:
    save(directory)
    path = directory / rundir.OUTCOME
    path.write_bytes(path.read_bytes()[:cut])
    assert freed(judge(str(directory), "run")).outcome is None


def test_strange_files_in_place_of_the_outcome(directory: Path) -> None:
    path = directory / rundir.OUTCOME
    path.symlink_to("/etc/passwd")
    assert "symbolic link" in freed(judge(str(directory), "run")).problem
    path.unlink()
    path.mkdir()
    assert "cannot be read" in freed(judge(str(directory), "run")).problem
    path.rmdir()
    os.mkfifo(path)
    assert "not a file of Cronward" in freed(judge(str(directory), "run")).problem


def test_a_damaged_intent_is_none_and_a_missing_lock_is_free(directory: Path) -> None:
    (directory / rundir.INTENT).write_bytes(b"garbage")
    (directory / rundir.LOCK).unlink()
    assert freed(judge(str(directory), "run")).intent is None


def test_an_intent_of_another_run_is_damage(directory: Path) -> None:
    foreign = rundir.encode_intent(msgspec.structs.replace(INTENT, run="another"))
    (directory / rundir.INTENT).write_bytes(foreign)
    with pytest.raises(rundir.Damaged, match="another run"):
        read_intent(str(directory))
    assert freed(judge(str(directory), "run")).intent is None


def test_a_fifo_in_place_of_the_lock_blocks_nobody(directory: Path) -> None:
    (directory / rundir.LOCK).unlink()
    os.mkfifo(directory / rundir.LOCK)
    assert freed(judge(str(directory), "run")).problem == "no outcome was saved"
    assert not is_over(str(directory))


def test_the_byte_says_whether_the_task_is_over(directory: Path) -> None:
    assert not is_over(str(directory))
    (directory / rundir.LOCK).write_bytes(rundir.TASK_OVER)
    assert is_over(str(directory))
    assert not is_over(str(directory / "none"))


def test_publishing_over_an_existing_run_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    directories = RunDirectories(str(tmp_path))
    (tmp_path / Path(directories.path("run")).name).mkdir()
    with pytest.raises(FileExistsError):
        directories.publish(INTENT)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_half_made_directory_is_replaced(tmp_path: Path) -> None:
    directories = RunDirectories(str(tmp_path))
    half = tmp_path / f"{rundir.NEW_PREFIX}{Path(directories.path('run')).name}"
    half.mkdir()
    (half / "rubbish").touch()
    built = directories.publish(INTENT)
    assert sorted(path.name for path in Path(built.path).iterdir()) == [rundir.INTENT, rundir.LOCK]
    assert not half.exists()
    directories.discard(built)
    assert not list(tmp_path.iterdir())
