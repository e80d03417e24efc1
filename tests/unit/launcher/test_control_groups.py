"""Real control groups, where there are any."""

import errno
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cronward.launcher.control_groups import ControlGroups
from cronward.protocol.cgroup import executor_cgroup, own_cgroup
from cronward.protocol.identity import ProcessIdentity, boot_id, start_ticks
from tests.support.waiting import wait_until

DEAD = ProcessIdentity(2**22 + 7, 1, boot_id())


@pytest.fixture
def group() -> Iterator[Path]:
    """The group of an executor that is dead, below one that no launcher on this machine looks into."""
    own = own_cgroup()
    if own is None:
        pytest.skip("no cgroup2 here")
    parent = own / f"launcher-test-{os.getpid()}"
    try:
        parent.mkdir()
    except PermissionError as error:
        pytest.skip(f"cgroup2 is not writable here: {error}")
    group = executor_cgroup(DEAD, parent)
    group.mkdir()
    yield group
    (parent / "cgroup.kill").write_text("1")
    for directory in sorted(parent.rglob("*/"), reverse=True):
        if directory.is_dir():
            wait_until(partial(_removed, directory), f"{directory} can be removed")
    parent.rmdir()


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:
        return False
    return True


def test_everything_in_the_group_is_found_and_ended_and_the_group_removed(group: Path) -> None:
    groups = ControlGroups(group.parent)
    inner = group / "made by the job"
    inner.mkdir()
    children = [subprocess.Popen(["sleep", "300"], start_new_session=True, env={}) for _ in range(2)]
    (group / "cgroup.procs").write_text(str(children[0].pid))
    (inner / "cgroup.procs").write_text(str(children[1].pid))
    assert groups.pids(DEAD) == {child.pid for child in children}
    groups.remove_empty()
    assert group.exists()
    groups.kill(DEAD)
    assert [child.wait(10) for child in children] == [-9, -9]
    assert groups.pids(DEAD) == set()
    inner.rmdir()
    groups.remove_empty()
    assert not group.exists()


def test_the_group_of_a_living_executor_is_not_removed(group: Path) -> None:
    child = subprocess.Popen(["sleep", "300"])
    ticks = start_ticks(child.pid)
    assert ticks is not None
    empty = executor_cgroup(ProcessIdentity(child.pid, ticks, boot_id()), group.parent)
    empty.mkdir()
    ControlGroups(group.parent).remove_empty()
    assert empty.exists()
    child.kill()
    child.wait()
    ControlGroups(group.parent).remove_empty()
    assert not empty.exists()


@pytest.mark.parametrize(("number", "logged"), [(errno.ENOENT, 0), (errno.ENODEV, 0), (errno.EACCES, 1)])
def test_a_group_that_cannot_be_killed_ends_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int, logged: int
) -> None:
    """ENODEV: another launcher removed it between open and write."""

    def fail(path: Path, data: str) -> int:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "write_text", fail)
    ControlGroups(tmp_path).kill(DEAD)
    assert len(caplog.records) == logged


def test_what_is_removed_while_it_is_searched_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = executor_cgroup(DEAD, tmp_path)
    for name in ("a", "b"):
        (group / name).mkdir(parents=True)
        (group / name / "cgroup.procs").write_text("7\n8\n" if name == "b" else "9\n")
    scan = os.scandir

    def gone(path: str) -> object:
        if str(path).endswith("/a"):
            raise FileNotFoundError(path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", gone)
    assert ControlGroups(tmp_path).pids(DEAD) == {7, 8}


def test_without_cgroup2_nothing_is_found() -> None:
    groups = ControlGroups(None)
    groups.kill(DEAD)
    groups.remove_empty()
    assert groups.pids(DEAD) == set()
