"""Deleting directories."""

import os
from pathlib import Path

import pytest

from cronward.launcher.forgetting import ENTRIES_PER_STEP, Forgetting
from cronward.launcher.run_directories import RunDirectories
from cronward.protocol import identity
from cronward.protocol.rundir import Intent, Limits


def publish(directories: RunDirectories, run: str) -> tuple[Path, int]:
    executor = identity.ProcessIdentity(1, 2, "boot")
    built = directories.publish(Intent(run, "slot", b"{}", Limits(1, 0, 1, 1, 1, 1), executor, None, "/bin"))
    return Path(built.path), built.lock_fd


@pytest.fixture
def directories(tmp_path: Path) -> RunDirectories:
    return RunDirectories(str(tmp_path))


def test_a_held_lock_protects_even_a_run_that_nobody_knows(directories: RunDirectories) -> None:
    forgetting = Forgetting(directories, lambda run: False)
    path, lock_fd = publish(directories, "run")
    assert forgetting.forget(["run", "absent"]) == ["absent"]
    assert path.exists()
    os.close(lock_fd)
    assert forgetting.forget(["run"]) == ["run"]
    assert not path.exists()


def test_a_known_run_is_kept_though_its_lock_is_free(directories: RunDirectories) -> None:
    path, lock_fd = publish(directories, "run")
    os.close(lock_fd)
    assert Forgetting(directories, lambda run: run == "run").forget(["run"]) == []
    assert path.exists()


def test_a_step_removes_a_bounded_number(directories: RunDirectories) -> None:
    forgetting = Forgetting(directories, lambda run: False)
    path, lock_fd = publish(directories, "run")
    os.close(lock_fd)
    for number in range(3 * ENTRIES_PER_STEP):
        (path / str(number)).touch()
    forgetting.forget(["run"])
    left = Path(directories.root) / f".forget-{path.name}"
    before = len(list(left.iterdir()))
    forgetting.delete_some(0)
    assert before - len(list(left.iterdir())) == ENTRIES_PER_STEP
    for _ in range(4):
        forgetting.delete_some(0)
    assert not left.exists()
