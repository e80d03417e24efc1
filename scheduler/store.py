"""The store: transactions, savepoints and named queries over the one connection."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from cronward.scheduler import queries

Value = int | float | str | bytes | None
Row = tuple[Value, ...]


class StorageFull(Exception):
    """No space was left; nothing of the transaction happened."""


class StorageFailed(Exception):
    """The database cannot be read or written (I/O error, corruption). The process has to end; a restart recovers."""


class Store:
    """Runs queries by name. Values are bound by name, `:like_this`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._queries = queries.load()

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


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except apsw.FullError as error:
        raise StorageFull(str(error)) from error
    except (apsw.IOError, apsw.CorruptError, apsw.NotADBError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise StorageFailed(f"{type(error).__name__}: {error}") from error
    except UnicodeDecodeError as error:
        raise StorageFailed(f"a text in the database is damaged: {error}") from error
