"""The store: transactions, savepoints and named queries over the one connection."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from cronward.protocol.errors import Code
from cronward.scheduler import queries

Value = int | float | str | bytes | None
Row = tuple[Value, ...]


class StorageBlocked(Exception):
    """Nothing can be written at the moment, and nothing of the transaction happened; it may go on by itself later."""

    def __init__(self, code: Code, message: str) -> None:
        self.code = code
        super().__init__(message)


class StorageFailed(Exception):
    """The database cannot be read or written (I/O error, corruption). The process has to end; a restart recovers."""


class Store:
    """Runs queries by name. Values are bound by name, `:like_this`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._queries = queries.load()
        self._file = _identity(connection.filename)

    def rows(self, query: str, /, **values: Value) -> list[Row]:
        try:
            return list(self.connection.execute(self._queries[query], values))
        except _FAILURES as error:
            raise _told(error) from error

    def row(self, query: str, /, **values: Value) -> Row | None:
        try:
            return self.connection.execute(self._queries[query], values).fetchone()
        except _FAILURES as error:
            raise _told(error) from error

    def run(self, query: str, /, **values: Value) -> int:
        """Executes a statement that changes rows; how many it changed."""
        try:
            self.connection.execute(self._queries[query], values)
            return self.connection.changes()
        except _FAILURES as error:
            raise _told(error) from error

    def integer(self, query: str, /, **values: Value) -> int:
        """The one integer that the query selects; null counts as 0."""
        row = self.row(query, **values)
        value = row[0] if row else None
        return value if isinstance(value, int) else 0

    def begin(self) -> None:
        self._control("BEGIN")

    def commit(self) -> None:
        """Raises StorageBlocked instead if the database is not at its path any more: the next start would not find
        what is written now."""
        path = self.connection.filename
        if self.connection.txn_state("main") == apsw.SQLITE_TXN_WRITE and _identity(path) != self._file:
            raise StorageBlocked(Code.STORAGE_MOVED, f"the database {path} was removed or replaced")
        self._control("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction, if SQLite has not done so itself, as if it had not been."""
        if self.connection.in_transaction:
            self._control("ROLLBACK")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What raises inside is undone alone; the transaction goes on."""
        self._control("SAVEPOINT message")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self._control("ROLLBACK TO message")
                self._control("RELEASE message")
            raise
        self._control("RELEASE message")

    def _control(self, statement: str) -> None:
        try:
            self.connection.execute(statement)
        except _FAILURES as error:
            raise _told(error) from error


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode; None if there is no such file. (To open it would do harm: closing it drops SQLite's locks.)
    Raises StorageFailed if that cannot be told."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror}") from error
    return found.st_dev, found.st_ino


_FAILURES = (
    apsw.FullError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    UnicodeDecodeError,
)


def _told(error: Exception) -> StorageBlocked | StorageFailed:
    """What one of the failures means."""
    match error:
        case apsw.FullError():
            return StorageBlocked(Code.STORAGE_FULL, "the disk is full")
        case UnicodeDecodeError():
            return StorageFailed(f"a text in the database is damaged: {error}")
        case _:
            return StorageFailed(f"{type(error).__name__}: {error}")
