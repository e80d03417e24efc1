"""Opening fails closed: one StartupError with its phase, and the file keeps every byte."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from cronward.protocol import exits
from cronward.protocol.errors import Code, StartupError
from cronward.scheduler.database import (
    RESTORING,
    SCHEMA_VERSION,
    close_database,
    integrity_problems,
    open_database,
)

LIFE = "INSERT INTO lives VALUES (:instance, 'b', 'v', 0, 0, :ended_ms)"


def files(path: Path) -> dict[str, bytes]:
    """What the database and its log hold; an empty log is none."""
    found = {name: name.read_bytes() for name in (path, Path(f"{path}-wal")) if name.exists()}
    return {name.name: data for name, data in found.items() if data}


def refused(path: Path, read_only: bool = False, exit_code: int = exits.DATABASE) -> str:
    """The phase in which the file is refused; nothing of it is changed."""
    before = files(path) if path.is_file() else {}
    with pytest.raises(StartupError) as caught:
        open_database(path, read_only=read_only)
    error = caught.value
    assert error.code is Code.DB_INIT_FAILED
    assert error.exit_code == exit_code
    assert str(path) in error.message
    assert "\n" not in error.message
    if before:
        assert files(path) == before
    return str(error.details["phase"])


def ours(path: Path, *, ended: bool = True, rows: int = 2000) -> Path:
    """A database of this release with some pages, closed in good order or left as by a crash."""
    connection = open_database(path)
    connection.execute(LIFE, {"instance": "one", "ended_ms": 1 if ended else None})
    with connection:
        connection.executemany("INSERT INTO meta VALUES (?, ?)", ((f"key {n}", "x" * 50) for n in range(rows)))
    close_database(connection)
    return path


def damage(path: Path) -> None:
    """Overwrites a page of a table."""
    connection = apsw.Connection(str(path))
    (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'meta'").fetchone() or (0,)
    size = int(connection.pragma("page_size"))
    connection.close()
    with path.open("r+b") as file:
        file.seek((int(root) - 1) * size)
        file.write(b"\xff" * size)


def empty_file(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b"this is not a database at all, " * 400)


def cut(path: Path) -> None:
    ours(path, ended=False)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def foreign(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()


def foreign_application(path: Path) -> None:
    foreign(path)
    other = sqlite3.connect(path)
    other.execute("PRAGMA application_id = 12345")
    other.commit()
    other.close()


def newer(path: Path) -> None:
    ours(path)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", SCHEMA_VERSION + 1)
    connection.close()


def corrupt_after_a_crash(path: Path) -> None:
    damage(ours(path, ended=False))


@pytest.mark.parametrize(
    ("make", "phase"),
    [
        (garbage, "open"),
        (foreign, "identity"),
        (foreign_application, "identity"),
        (newer, "newer"),
        (corrupt_after_a_crash, "check"),
        (cut, "check"),
    ],
)
def test_refused(tmp_path: Path, make: Callable[[Path], None], phase: str) -> None:
    path = tmp_path / "cronward.db"
    make(path)
    found = refused(path)
    # A cut file is noticed as soon as a page beyond its end is read.
    assert found == phase or (make is cut and found in ("open", "identity"))


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    assert refused(tmp_path) == "open"


def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere" / "cronward.db") == "open"


def test_a_log_of_a_newer_release_is_not_written_back(tmp_path: Path) -> None:
    path = ours(tmp_path / "cronward.db")
    writer = apsw.Connection(str(path))
    writer.pragma("user_version", SCHEMA_VERSION + 1)
    left = files(path)
    assert left["cronward.db-wal"]
    copy = tmp_path / "copy" / "cronward.db"
    copy.parent.mkdir()
    for name, data in left.items():
        (copy.parent / name).write_bytes(data)
    writer.close()
    assert refused(copy) == "newer"


def test_somebody_else_has_it_open(tmp_path: Path) -> None:
    path = ours(tmp_path / "cronward.db")
    holder = open_database(path)
    holder.execute("SELECT count(*) FROM meta").fetchall()
    assert refused(path, exit_code=exits.STORAGE) == "open"  # the next start may find it free
    assert refused(path, read_only=True, exit_code=exits.STORAGE) == "open"
    holder.close()


def test_the_check_runs_only_after_an_unclean_end(tmp_path: Path) -> None:
    path = ours(tmp_path / "cronward.db", ended=True)
    damage(path)
    open_database(path).close()  # `doctor` and `check` look at everything; a quick start does not
    connection = open_database(path, read_only=True)
    assert integrity_problems(connection) != []
    connection.close()


def test_an_empty_file_is_a_first_start_but_no_backup(tmp_path: Path) -> None:
    path = tmp_path / "cronward.db"
    empty_file(path)
    assert refused(path, read_only=True) == "identity"
    connection = open_database(path)
    assert connection.pragma("user_version") == SCHEMA_VERSION
    connection.close()


def test_an_interrupted_restore_is_no_first_start(tmp_path: Path) -> None:
    path = tmp_path / "cronward.db"
    Path(f"{path}{RESTORING}").write_bytes(b"")
    assert refused(path) == "restore"
    assert not path.exists()


def test_an_orderly_end_leaves_one_private_file(tmp_path: Path) -> None:
    path = ours(tmp_path / "cronward.db")
    assert [found.name for found in tmp_path.iterdir()] == ["cronward.db"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_sound_database_has_no_problems(tmp_path: Path) -> None:
    connection = open_database(ours(tmp_path / "cronward.db"), read_only=True)
    assert integrity_problems(connection) == []
    connection.close()
