"""A state directory that is full or cannot be used."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.protocol import exits, launch
from cronward.protocol.launch import RefuseReason
from tests.e2e.launcher.rig import Rig
from tests.support.instance import Instance


@pytest.fixture
def small() -> Iterator[Rig]:
    """A rig whose state directory is a disk of one MiB."""
    with Instance(disk_mib=1) as scratch, Rig(scratch) as rig:
        yield rig


def test_a_full_disk_refuses_one_launch_and_is_said_until_it_clears(small: Rig) -> None:
    small.start()
    small.reconciled()
    disk = small.scratch.disk
    assert disk is not None
    disk.fill()
    small.order("unlucky")
    refused = small.expect(launch.Refused, "unlucky")
    assert refused.reason is RefuseReason.SPAWN_FAILED
    assert "No space left" in refused.detail
    assert "No space left" in str(small.wait_heartbeat().cannot_start)
    assert not small.directory("unlucky").exists()
    disk.free()
    while small.wait_heartbeat().cannot_start is not None:
        pass
    small.order("lucky")
    small.expect(launch.Accepted, "lucky")
    runs = disk.outside(small.scratch.paths.runs)
    assert [path.name for path in runs.iterdir()] == [small.directory("lucky").name]


def test_a_state_directory_that_cannot_be_made_is_said(rig: Rig) -> None:
    (rig.scratch.root / "file").touch()
    daemon = rig.start_unready({"CRONWARD_STATE_DIR": str(rig.scratch.root / "file" / "state")})
    assert daemon.process.wait(10) == exits.STATE_DIR
    assert daemon.events("launcher.cannot_start")


def test_a_bad_configuration_is_said(rig: Rig, tmp_path: Path) -> None:
    daemon = rig.start_unready({"CRONWARD_EXECUTORS_READY": "many"})
    assert daemon.process.wait(10) == exits.CONFIG
    assert "CRONWARD_EXECUTORS_READY" in str(daemon.events("launcher.config_invalid")[0]["message"])
