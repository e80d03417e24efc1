"""Named SQL: `-- name:` lines in sql/*.sql, read once. Python holds no SQL text but transaction control and pragmas."""

import re
from pathlib import Path

SQL = Path(__file__).parent / "sql"
SCHEMA = SQL / "schema.sql"
MIGRATIONS = SQL / "migrations"

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_FRAGMENT = re.compile(r"\{(\w+)\}")


def load(directory: Path = SQL) -> dict[str, str]:
    """Every query by its name, `{fragment}` replaced from fragments.sql. Raises ValueError if two have one name."""
    queries: dict[str, str] = {}
    for path in sorted(directory.glob("*.sql")):
        if path == SCHEMA:
            continue
        _, *parts = _NAME.split(path.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in queries:
                raise ValueError(f"{path.name}: the query {name} exists twice")
            lines = (line for line in text.splitlines() if not line.startswith("--"))
            queries[name] = "\n".join(lines).strip().rstrip(";")
    return {name: _FRAGMENT.sub(lambda match: queries[match[1]], text) for name, text in queries.items()}
