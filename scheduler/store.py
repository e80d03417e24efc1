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
        with _storage_errors():
            return list(self.connection.execute(self._queries[query], values))

    def row(self, query: str, /, **values: Value) -> Row | None:
        with _storage_errors():
            return self.connection.execute(self._queries[query], values).fetchone()

    def run(self, query: str, /, **values: Value) -> int:
        """Executes a statement that changes rows; how many it changed."""
        with _storage_errors():
            self.connection.execute(self._queries[query], values)
            return self.connection.changes()

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
        if self.connection.txn_state() == apsw.SQLITE_TXN_WRITE and _identity(path) != self._file:
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
        with _storage_errors():
            self.connection.execute(statement)


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode; None if there is no such file. (To open it would do harm: closing it drops SQLite's locks.)"""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except apsw.FullError as error:
        raise StorageBlocked(Code.STORAGE_FULL, "the disk is full") from error
    except (apsw.IOError, apsw.CorruptError, apsw.NotADBError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise StorageFailed(f"{type(error).__name__}: {error}") from error
    except UnicodeDecodeError as error:
        raise StorageFailed(f"a text in the database is damaged: {error}") from error
