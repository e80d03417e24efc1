"""Opening the database, failing closed: nothing is created, changed or guessed unless the file is ours and sound."""

import os
from pathlib import Path

import apsw

from cronward.protocol import exits, log
from cronward.protocol.errors import Code, StartupError
from cronward.scheduler import queries

APPLICATION_ID = 0x43524E57
SCHEMA_VERSION = 1
STATEMENTS_MAX = 200
"""Twice what there are: the cache is a ring, and drops what was not used for a while."""
RESTORING = ".restoring"
"""Suffix of the copy that a restore prepares; it takes the database's place by being renamed."""


def open_database(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """The one connection, with the schema of this release and the file locked for this process.

    The caller holds `scheduler.lock`. Raises StartupError(DB_INIT_FAILED) with the phase: restore, open,
    identity, newer, check, schema, migration. A file that is refused keeps every byte.
    """
    connection = _open(path, read_only=read_only)
    phase = "identity"
    try:
        version = _identify(connection, path)
        if version == 0 and read_only:
            raise _refused(path, "identity", "it is empty")
        if version and not _ended_well(connection):
            phase = "check"
            _quick_check(connection, path)
        if not read_only:
            phase = "migration" if version else "schema"
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            if version < SCHEMA_VERSION:
                _build(connection, version)
    except (apsw.Error, OSError) as error:
        _close_untouched(connection)
        raise _failed(path, phase, error) from error
    except StartupError:
        _close_untouched(connection)
        raise
    return connection


def _close_untouched(connection: apsw.Connection) -> None:
    """Closes without the checkpoint that would write a log of somebody else's into a file that was refused."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def close_database(connection: apsw.Connection) -> None:
    """Checkpoints and closes; the write-ahead log disappears."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def sync_directory(directory: Path) -> None:
    """Makes the names in it survive a power loss, as fsync does the content of a file. Raises OSError."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def integrity_problems(connection: apsw.Connection) -> list[str]:
    """What SQLite's full check and the foreign keys complain about; empty if all is well. Slow on a large file."""
    try:
        problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        problems += [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    except apsw.CorruptError as error:  # too damaged to be checked to the end
        problems = [str(error)]
    return problems


def _open(path: Path, *, read_only: bool) -> apsw.Connection:
    if not path.exists() and Path(f"{path}{RESTORING}").exists():
        raise _refused(path, "restore", "a restore was interrupted before its end; do it again")
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    try:
        if not read_only:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = apsw.Connection(str(path), flags=flags, statementcachesize=STATEMENTS_MAX)
    except (apsw.Error, OSError) as error:
        raise _failed(path, "open", error) from error
    try:
        connection.set_busy_timeout(0)
        if not read_only:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA journal_size_limit = 67108864").fetchall()
        connection.execute("PRAGMA wal_autocheckpoint = 2000").fetchall()
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.Error as error:
        _close_untouched(connection)
        raise _failed(path, "open", error) from error
    return connection


def _identify(connection: apsw.Connection, path: Path) -> int:
    """The file's schema version, 0 for an empty one."""
    version = int(connection.pragma("user_version"))
    application = int(connection.pragma("application_id"))
    empty = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    if empty and application in (0, APPLICATION_ID):
        return 0
    if application != APPLICATION_ID:
        raise _refused(path, "identity", "it is a database of another program")
    if version > SCHEMA_VERSION:
        raise _refused(
            path, "newer", f"its schema has version {version}, this release knows {SCHEMA_VERSION}; nothing was changed"
        )
    return version


def _ended_well(connection: apsw.Connection) -> bool:
    row = connection.execute(queries.load()["last_life"]).fetchone()
    return row is None or row[1] is not None


def _quick_check(connection: apsw.Connection, path: Path) -> None:
    problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
    if problems:
        lines = [line for problem in problems for line in problem.splitlines()]
        raise _refused(path, "check", "it is damaged: " + "; ".join(lines[:5]))


def _build(connection: apsw.Connection, version: int) -> None:
    """Schema or migrations, in one transaction."""
    with connection:
        if version == 0:
            connection.execute(queries.SCHEMA.read_text(encoding="utf-8"))
        for number in range(version + 1, SCHEMA_VERSION + 1) if version else ():
            connection.execute((queries.MIGRATIONS / f"{number:04}.sql").read_text(encoding="utf-8"))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA_VERSION)
    log.info("database.built", "the database has the schema of this release", schema=SCHEMA_VERSION, was=version)


def _failed(path: Path, phase: str, error: Exception) -> StartupError:
    """What another start may cure (somebody has the file open, no space, an I/O error) ends with STORAGE."""
    passing = isinstance(error, apsw.BusyError | apsw.FullError | apsw.IOError)
    exit_code = exits.STORAGE if passing else exits.DATABASE
    return _refused(path, phase, f"{type(error).__name__}: {error}", exit_code)


def _refused(path: Path, phase: str, problem: str, exit_code: int = exits.DATABASE) -> StartupError:
    return StartupError(
        Code.DB_INIT_FAILED,
        exit_code,
        f"cannot open the database {path} (phase {phase}): {problem}",
        phase=phase,
        path=str(path),
    )
