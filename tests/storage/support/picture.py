"""Everything that a database holds, as a value that can be compared: no table and no column is named here."""

import apsw

from cronward.scheduler.store import Row

Picture = dict[str, list[Row]]


def picture(connection: apsw.Connection) -> Picture:
    """Every table with its rows, in the order of their text."""
    tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr) for name in sorted(tables)}


def difference(first: Picture, second: Picture) -> str:
    """Rows that only one of them has, in short."""
    lines = []
    for name in sorted(first.keys() | second.keys()):
        one, two = first.get(name, []), second.get(name, [])
        lines += [f"-{name} {row}" for row in one if row not in two][:2]
        lines += [f"+{name} {row}" for row in two if row not in one][:2]
    return "; ".join(lines)[:600]
