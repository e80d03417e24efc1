"""A restore that was interrupted, and the old database that is kept beside the new one."""

import shutil
from pathlib import Path

import apsw
import pytest

from cronward.protocol import exits
from cronward.protocol.paths import Paths
from cronward.scheduler import offline
from cronward.scheduler.database import RESTORING, close_database, open_database


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "s", tmp_path / "r")


@pytest.fixture(autouse=True)
def _unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The locks would be held until the end of this process."""
    monkeypatch.setattr(offline, "take_locks", lambda paths: paths.state.mkdir(exist_ok=True))


def database(path: Path, value: str) -> apsw.Connection:
    """An open database of this release that says whose it is."""
    path.parent.mkdir(exist_ok=True)
    connection = open_database(path)
    connection.execute("INSERT INTO meta VALUES ('whose', ?)", (value,))
    return connection


def whose(path: Path) -> list[str]:
    connection = open_database(path)
    found = [str(value) for (value,) in connection.execute("SELECT value FROM meta WHERE key = 'whose'")]
    close_database(connection)
    return found


def killed(path: Path, value: str, target: Path) -> None:
    """Leaves at `target` what a process that was killed leaves: the file and its log."""
    scratch = path.with_name(f"{value}.db")
    connection = database(scratch, value)
    target.parent.mkdir(exist_ok=True)
    for suffix in ("", "-wal"):
        shutil.copy(f"{scratch}{suffix}", f"{target}{suffix}")
    connection.close()
    assert Path(f"{target}-wal").stat().st_size > 0


def backup(tmp_path: Path, value: str) -> Path:
    path = tmp_path / "backups" / f"{value}.db"
    close_database(database(path, value))
    return path


def test_the_log_of_an_interrupted_restore_is_not_applied_to_the_next(paths: Paths, tmp_path: Path) -> None:
    source = backup(tmp_path, "wanted")
    killed(tmp_path / "first", "interrupted", Path(f"{paths.database}{RESTORING}"))
    assert offline.restore(paths, str(source)) == exits.OK
    assert whose(paths.database) == ["wanted"]
    assert not Path(f"{paths.database}{RESTORING}-wal").exists()


def test_the_old_database_finds_its_log(paths: Paths, tmp_path: Path) -> None:
    """What was committed before a crash may be in the log alone."""
    source = backup(tmp_path, "wanted")
    killed(tmp_path / "old", "old", paths.database)
    assert offline.restore(paths, str(source)) == exits.OK
    (kept,) = (path for path in paths.state.iterdir() if ".before-" in path.name and not path.name.endswith("-wal"))
    assert whose(kept) == ["old"]
    assert whose(paths.database) == ["wanted"]
