"""Online backup: SQLite's own, a bounded number of pages per turn, so that the loop never waits for it."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec

from cronward.protocol import control, log
from cronward.protocol.errors import Code, CronwardError, ErrorBody, InvalidRequest
from cronward.protocol.views import BackupAnswer
from cronward.scheduler.database import sync_directory
from cronward.scheduler.effects import Effects, Reply
from cronward.scheduler.world import Turn

PAGES_PER_TURN = 256

Answer = Callable[[bytes], Reply]


class _Running:
    """One backup on its way into `<path>.part`."""

    def __init__(self, path: Path, source: apsw.Connection, started_mono_ms: int) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self.started_mono_ms = started_mono_ms
        self.target = apsw.Connection(str(self.part))
        self.steps = self.target.backup("main", source, "main")
        self.stepped = False

    def remove(self) -> None:
        """Gives up; what cannot be removed stays behind, the next backup to that path writes over it."""
        self.target.close(True)  # and with it the steps, whatever the disk says
        for name in (self.part, self.part.with_name(self.part.name + "-journal")):
            with contextlib.suppress(OSError):
                name.unlink(missing_ok=True)


class Backups:
    """At most one backup at a time."""

    def __init__(self, source: apsw.Connection) -> None:
        self._source = source
        self._running: _Running | None = None
        self._answer: Answer | None = None
        self._request_id: str | int | None = None

    @property
    def active(self) -> bool:
        return self._running is not None

    def begin(self, turn: Turn, path_text: str, answer: Answer, request_id: str | int | None) -> None:
        """service.backup. Raises CronwardError if another one runs or the path cannot be used."""
        if self._running is not None:
            raise CronwardError(Code.BACKUP_FAILED, f"a backup to {self._running.path} is running")
        path = Path(path_text)
        if not path.is_absolute() or "\0" in path_text:
            raise InvalidRequest("path", f"must be absolute (got {path_text!r})")
        try:
            if path.exists():
                raise InvalidRequest("path", f"{path} exists; a backup never overwrites")
            os.close(os.open(f"{path}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
            self._running = _Running(path, self._source, turn.mono_ms)
        except (OSError, apsw.Error) as error:
            raise CronwardError(Code.BACKUP_FAILED, f"cannot write {path}: {error}") from error
        self._answer, self._request_id = answer, request_id
        log.info("backup.begun", "a backup was begun", path=str(path))

    def withdraw(self) -> None:
        """A backup that was begun in a turn that is undone: its request is applied again."""
        if self._running is not None and not self._running.stepped:
            self._running.remove()
            self._running = None

    def step(self, mono_ms: int, effects: Effects) -> None:
        """Copies some pages, outside of any transaction; the last step makes the file appear and answers."""
        running = self._running
        if running is None:
            return
        try:
            running.stepped = True
            running.steps.step(PAGES_PER_TURN)
            if not running.steps.done:
                return
            body = self._finish(running, mono_ms)
        except (apsw.Error, OSError) as error:
            body = self._give_up(running, error)
        self._running = None
        if self._answer is not None:
            effects.replies.append(self._answer(body))

    def _finish(self, running: _Running, mono_ms: int) -> bytes:
        pages = running.steps.page_count
        running.steps.finish()
        running.target.execute("PRAGMA journal_mode = DELETE").fetchall()
        running.target.close()
        with running.part.open("rb") as file:
            os.fsync(file.fileno())
        running.part.rename(running.path)
        sync_directory(running.path.parent)
        size = running.path.stat().st_size
        log.info("backup.finished", "a backup is complete", path=str(running.path), bytes=size)
        result = BackupAnswer(str(running.path), size, pages, mono_ms - running.started_mono_ms)
        response = control.Response(id=self._request_id, ok=True, payload=msgspec.Raw(msgspec.json.encode(result)))
        return msgspec.json.encode(response)

    def _give_up(self, running: _Running, error: Exception) -> bytes:
        log.error("backup.failed", f"the backup failed: {error}", path=str(running.path))
        running.remove()
        problem = ErrorBody(str(Code.BACKUP_FAILED), f"cannot write {running.path}: {error}")
        return msgspec.json.encode(control.Response(id=self._request_id, ok=False, error=problem))
