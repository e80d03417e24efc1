"""What is done to the database while no scheduler runs: checking it, and putting a backup in its place."""

import shutil
from pathlib import Path

import apsw

from cronward.protocol import exits, log
from cronward.protocol.clock import SystemClock
from cronward.protocol.errors import Code, CronwardError, StartupError
from cronward.protocol.outcome import Reason
from cronward.protocol.paths import Paths
from cronward.scheduler.database import RESTORING, close_database, integrity_problems, open_database, sync_directory
from cronward.scheduler.service import take_locks
from cronward.scheduler.store import Store

_SIDE_FILES = ("-wal", "-shm", "-journal")


def check(paths: Paths, file: str | None) -> int:
    """The full integrity check of the live database (nobody may be using it) or of a backup file."""
    if file is None:
        take_locks(paths)
        connection = open_database(_existing(str(paths.database)))
    else:
        connection = open_database(_existing(file), read_only=True)
    problems = integrity_problems(connection)
    connection.close()
    for problem in problems:
        log.error("database.problem", problem)
    if problems:
        return exits.DATABASE
    log.info("database.sound", "the database is sound", path=file or str(paths.database))
    return exits.OK


def restore(paths: Paths, file: str) -> int:
    """Puts a checked copy of the backup in the place of the database; the old files are kept beside it.

    Runs that were queued or active when the backup was made are not started again: what became of them since is not
    known here.
    """
    source = _existing(file)
    if check(paths, str(source)) != exits.OK:
        raise CronwardError(Code.BACKUP_FAILED, f"{source} is damaged; nothing was changed")
    take_locks(paths)
    target = paths.database
    _refuse_in_use(target)
    prepared = Path(f"{target}{RESTORING}")
    for suffix in _SIDE_FILES:  # of a restore that was interrupted: its log must not be applied to this copy
        Path(f"{prepared}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(source, prepared)
    prepared.chmod(0o600)
    _end_live_runs(prepared)
    kept = f"{target}.before-{SystemClock().wall_ms()}"
    existed = target.exists()
    for suffix in ("", *_SIDE_FILES):  # so named that the old database finds its log
        name = Path(f"{target}{suffix}")
        if name.exists():
            name.rename(f"{kept}{suffix}")
    prepared.rename(target)
    sync_directory(target.parent)
    log.info("database.restored", f"the database is now that of {source}", kept=kept if existed else "")
    return exits.OK


def _refuse_in_use(path: Path) -> None:
    """A running scheduler holds its database besides its lock, whose file somebody may have removed."""
    if not path.exists():
        return
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        problem = f"{path} is in use by a scheduler; stop it first; nothing was changed"
        raise StartupError(Code.ALREADY_RUNNING, exits.ALREADY_RUNNING, problem) from None
    except apsw.Error:  # damaged: what a restore is for
        return
    finally:
        connection.close()


def _end_live_runs(path: Path) -> None:
    connection = open_database(path)
    store = Store(connection)
    store.begin()
    now_ms = SystemClock().wall_ms()
    for row in store.rows("live_runs_in_short"):
        queued = row[1] == "queued"
        store.run(
            "settle_run",
            run_id=row[0],
            from_state=row[1],
            state="skipped" if queued else "error",
            reason=Reason.CONTEXT_LOST if queued else Reason.INTERRUPTED,
            message="it was live when the backup that was restored was made",
            started_ms=None,
            ended_ms=now_ms,
            outcome=None,
        )
    store.commit()
    close_database(connection)


def _existing(file: str) -> Path:
    path = Path(file).absolute()
    if not path.is_file():
        raise CronwardError(Code.BACKUP_FAILED, f"{path}: no such file")
    return path
