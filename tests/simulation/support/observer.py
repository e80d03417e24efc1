"""Watches the rows of the scheduler's database by triggers, so that what was rolled back was never seen."""

import apsw
import msgspec

from tests.simulation.support.seen import TABLES, Changed, Row, Seen, Tampered

SQLiteValue = int | float | str | bytes | None

MAY_CHANGE_LATER = {"late_outcome", "forget_ms"}


class Observer:
    """Collects what happened in a turn."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        connection.execute("CREATE TEMP TABLE seen (n INTEGER PRIMARY KEY, name TEXT, before TEXT, after TEXT)")
        for table, kind in TABLES.items():
            self._watch(table, kind._fields)
        self._guard_terminal_runs()

    def _watch(self, table: str, columns: tuple[str, ...]) -> None:
        old, new = (f"json_array({', '.join(f'{row}.{name}' for name in columns)})" for row in ("OLD", "NEW"))
        differs = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in columns)
        for event, when, before, after in (
            ("INSERT", "", "NULL", new),
            ("UPDATE", f"WHEN {differs}", old, new),
            ("DELETE", "", old, "NULL"),
        ):
            self._connection.execute(
                f"CREATE TEMP TRIGGER seen_{table}_{event} AFTER {event} ON main.{table} {when} BEGIN"
                f" INSERT INTO seen (name, before, after) VALUES ('{table}', {before}, {after}); END"
            )

    def _guard_terminal_runs(self) -> None:
        names = [str(row[1]) for row in self._connection.execute("PRAGMA table_info(runs)")]
        differs = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in names if name not in MAY_CHANGE_LATER)
        self._connection.execute(
            "CREATE TEMP TRIGGER seen_tampering AFTER UPDATE ON main.runs"
            f" WHEN OLD.ended_ms IS NOT NULL AND ({differs}) BEGIN"
            " INSERT INTO seen (name, before) VALUES ('tampered', OLD.run_id); END"
        )

    def drain(self) -> list[Seen]:
        """Everything since the last time, in order."""
        rows = self._connection.execute("SELECT name, before, after FROM seen ORDER BY n").fetchall()
        if rows:
            self._connection.execute("DELETE FROM seen")
        return [_seen(str(name), before, after) for name, before, after in rows]


def _seen(name: str, before: SQLiteValue, after: SQLiteValue) -> Seen:
    if name == "tampered":
        return Tampered(str(before))
    return Changed(_row(name, before), _row(name, after))


def _row(name: str, values: SQLiteValue) -> Row | None:
    return None if values is None else msgspec.json.decode(str(values), type=TABLES[name])
