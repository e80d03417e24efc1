from pathlib import Path

import pytest

from cronward.protocol import cgroup
from cronward.protocol.identity import ProcessIdentity

HYBRID = (
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "40 31 0:37 / {mount}/systemd rw - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 {root} {mount} rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
)


def located(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: str, mount: Path, membership: str) -> Path | None:
    (tmp_path / "mountinfo").write_text(HYBRID.format(root=root, mount=str(mount).replace(" ", r"\040")))
    (tmp_path / "cgroup").write_text(membership)
    monkeypatch.setattr(cgroup, "_MOUNTINFO", tmp_path / "mountinfo")
    monkeypatch.setattr(cgroup, "_CGROUP", tmp_path / "cgroup")
    return cgroup.own_cgroup()


def test_the_group_below_a_mount_of_the_whole_hierarchy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mount = tmp_path / "with space"
    (mount / "system.slice/cronward.service").mkdir(parents=True)
    found = located(monkeypatch, tmp_path, "/", mount, "9:pids:/x\n0::/system.slice/cronward.service\n")
    assert found == mount / "system.slice/cronward.service"


def test_the_group_below_a_mount_of_a_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mnt/inner").mkdir(parents=True)
    assert (
        located(monkeypatch, tmp_path, "/docker/7", tmp_path / "mnt", "0::/docker/7/inner\n") == tmp_path / "mnt/inner"
    )
    assert located(monkeypatch, tmp_path, "/docker/7", tmp_path / "mnt", "0::/docker/77\n") is None


@pytest.mark.parametrize("membership", ["", "4:memory:/x\n", "0::/not/visible\n"])
def test_no_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, membership: str) -> None:
    assert located(monkeypatch, tmp_path, "/", tmp_path / "mnt", membership) is None


def test_the_name_says_which_process() -> None:
    identity = ProcessIdentity(42, 1234, "boot")
    assert cgroup.executor_cgroup(identity, Path("/cg")) == Path("/cg/cronward-x-42-1234")
