"""Real control groups, where there are any."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.launcher.control_groups import ControlGroups
from cronward.protocol.cgroup import executor_cgroup, own_cgroup
from cronward.protocol.identity import ProcessIdentity, boot_id, start_ticks

DEAD = ProcessIdentity(2**22 + 7, 1, boot_id())


@pytest.fixture
def group() -> Iterator[Path]:
    """The group of an executor that is dead."""
    parent = own_cgroup()
    if parent is None:
        pytest.skip("no cgroup2 here")
    group = executor_cgroup(DEAD, parent)
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"cgroup2 is not writable here: {error}")
    yield group
    if group.exists():
        group.rmdir()


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


def test_without_cgroup2_nothing_is_found() -> None:
    groups = ControlGroups(None)
    groups.kill(DEAD)
    groups.remove_empty()
    assert groups.pids(DEAD) == set()
