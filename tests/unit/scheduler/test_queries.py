"""Every named query is used, prepares against the real schema, and the hot ones read no whole table."""

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from cronward.scheduler import queries

PACKAGE = queries.SQL.parent
QUERIES = queries.load()
FRAGMENTS = {"job_columns", "run_columns", "job_filter", "run_filter"}

HOT = (
    "active_runs",
    "count_active",
    "count_queued",
    "delete_forgotten",
    "due_jobs",
    "find_request",
    "forget_old",
    "forget_surplus",
    "forgotten_runs",
    "job_by_declaration_key",
    "job_by_id",
    "job_has_runs",
    "jobs_by_name",
    "jobs_with_history_after",
    "live_run_of_job",
    "live_runs",
    "live_runs_in_short",
    "next_deadline",
    "next_deadlines",
    "prune_requests",
    "queue_head",
    "run_by_id",
    "runs_by_key",
    "settle_run",
    "unsent_notices",
)


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    database = apsw.Connection(":memory:")
    database.execute(queries.SCHEMA.read_text())
    yield database
    database.close()


def parameters(sql: str) -> dict[str, int]:
    return dict.fromkeys(re.findall(r":(\w+)", sql), 1)


@pytest.mark.parametrize("name", sorted(set(QUERIES) - FRAGMENTS))
def test_prepares_against_the_schema(connection: apsw.Connection, name: str) -> None:
    connection.execute("EXPLAIN " + QUERIES[name], parameters(QUERIES[name])).fetchall()


@pytest.mark.parametrize("name", HOT)
def test_hot_queries_scan_no_table(connection: apsw.Connection, name: str) -> None:
    sql = QUERIES[name]
    plan = [str(row[3]) for row in connection.execute("EXPLAIN QUERY PLAN " + sql, parameters(sql))]
    for step in plan:
        # A partial index holds only the live, unsent, ended or due rows: walking along it is what it is for.
        if step.startswith("SCAN"):
            assert re.search("USING (COVERING )?INDEX", step), plan
    assert not any("TEMP B-TREE" in step for step in plan if name != "live_runs"), plan


def used_in_python() -> set[str]:
    """Every name of a query that stands in the package as a string of its own."""
    texts = "".join(path.read_text() for path in PACKAGE.glob("*.py"))
    return set(re.findall(r'"([a-z_]+)"', texts)) | {name + "_asc" for name in ("list_runs", "list_runs_of_job")}


def test_no_query_is_unused() -> None:
    assert set(QUERIES) - FRAGMENTS - used_in_python() == set()


def test_no_query_is_unknown() -> None:
    texts = "".join(path.read_text() for path in PACKAGE.glob("*.py"))
    asked = set(re.findall(r'store\.(?:rows?|run|integer)\(\s*"(\w+)"', texts))
    assert len(asked) > 40
    assert asked <= set(QUERIES)


def test_a_name_is_given_once(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- name: x\nSELECT 1;\n")
    (tmp_path / "b.sql").write_text("-- name: x\nSELECT 2;\n")
    with pytest.raises(ValueError, match="exists twice"):
        queries.load(tmp_path)


def test_fragments_and_comments(tmp_path: Path) -> None:
    (tmp_path / "fragments.sql").write_text("-- name: columns\n-- What.\na, b;\n")
    (tmp_path / "x.sql").write_text("-- about the file\n\n-- name: x\n-- Why.\nSELECT {columns}\nFROM t;\n")
    assert queries.load(tmp_path)["x"] == "SELECT a, b\nFROM t"
