"""The schema: pinned as a fixture, reached by migrations, refusing illegal rows."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from cronward.protocol.errors import StartupError
from cronward.scheduler import database, queries
from cronward.scheduler.database import APPLICATION_ID, SCHEMA_VERSION, open_database

GOLDEN = Path(__file__).parents[2] / "golden" / "schema_v1.sql"


def described(connection: apsw.Connection) -> str:
    """Everything that the database declares, in a fixed order."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
    return "".join(f"-- {kind} {name}\n{sql};\n\n" for kind, name, sql in rows)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[apsw.Connection]:
    connection = open_database(tmp_path / "cronward.db")
    yield connection
    connection.close()


def test_a_fresh_database_has_the_pinned_schema(fresh: apsw.Connection) -> None:
    # A released schema never changes: a change is a migration, a new version and a new fixture.
    assert SCHEMA_VERSION == 1
    assert described(fresh) == GOLDEN.read_text()


def test_identity_and_durability(fresh: apsw.Connection) -> None:
    assert fresh.pragma("application_id") == APPLICATION_ID
    assert fresh.pragma("user_version") == SCHEMA_VERSION
    assert fresh.pragma("journal_mode") == "wal"
    assert fresh.pragma("synchronous") == 2
    assert fresh.pragma("locking_mode") == "exclusive"
    assert fresh.pragma("foreign_keys") == 1


# migrations


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release whose schema is one version ahead; the returned file is its migration."""
    directory = tmp_path / "migrations"
    directory.mkdir()
    monkeypatch.setattr(database, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(queries, "MIGRATIONS", directory)
    return directory / f"{SCHEMA_VERSION + 1:04}.sql"


def made(path: Path) -> Path:
    connection = open_database(path)
    connection.execute("INSERT INTO meta VALUES ('kept', 'yes')")
    connection.close()
    return path


def test_a_migration_keeps_what_is_there(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = made(tmp_path / "cronward.db")
    migration: Path = request.getfixturevalue("next_release")
    migration.write_text("ALTER TABLE meta ADD COLUMN note TEXT; UPDATE meta SET note = 'new';")
    connection = open_database(path)
    assert connection.execute("SELECT * FROM meta").fetchall() == [("kept", "yes", "new")]
    assert connection.pragma("user_version") == SCHEMA_VERSION + 1
    connection.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = made(tmp_path / "cronward.db")
    before = path.read_bytes()
    migration: Path = request.getfixturevalue("next_release")
    migration.write_text("DELETE FROM meta; ALTER TABLE nothing ADD COLUMN x TEXT;")
    with pytest.raises(StartupError) as caught:
        open_database(path)
    assert caught.value.details["phase"] == "migration"
    assert path.read_bytes() == before


def test_a_migration_that_is_missing_is_refused(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = made(tmp_path / "cronward.db")
    request.getfixturevalue("next_release")
    with pytest.raises(StartupError) as caught:
        open_database(path)
    assert caught.value.details["phase"] == "migration"


# illegal rows

JOB = (
    "INSERT INTO jobs (job_id, name, enabled, schedule_kind, definition, revision, created_ms, updated_ms)"
    " VALUES ('j', 'n', 1, 'at', '{}', 'r', 0, 0)"
)
RUN: dict[str, object] = {
    "run_id": "r",
    "run_key": "k",
    "job_id": "j",
    "job_position": 1,
    "job_name": "n",
    "kind": "scheduled",
    "slot_ms": 0,
    "requested_ms": 0,
    "state": "queued",
}
ACTIVE = {"state": "active", "activated_ms": 1, "instance": "i", "epoch": 1, "boot_id": "b"}
DONE = ACTIVE | {"state": "ok", "ended_ms": 2}


def insert(connection: apsw.Connection, **values: object) -> None:
    row = RUN | values
    names = ", ".join(row)
    marks = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", row)


@pytest.mark.parametrize("values", [{}, ACTIVE, DONE, DONE | {"state": "error", "reason": "exit_code"}])
def test_legal_rows(fresh: apsw.Connection, values: dict[str, object]) -> None:
    insert(fresh, **values)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"state": "running"}, id="unknown state"),
        pytest.param({"kind": "other"}, id="unknown kind"),
        pytest.param({"kind": "manual"}, id="manual without a mode"),
        pytest.param({"mode": "force"}, id="scheduled with a mode"),
        pytest.param({"kind": "manual", "mode": "maybe"}, id="unknown mode"),
        pytest.param({"activated_ms": 1, "instance": "i", "epoch": 1}, id="queued and activated"),
        pytest.param({"state": "active"}, id="active and not activated"),
        pytest.param(ACTIVE | {"instance": None}, id="active without instance"),
        pytest.param(ACTIVE | {"epoch": None}, id="active without epoch"),
        pytest.param(ACTIVE | {"ended_ms": 1}, id="active and ended"),
        pytest.param({"ended_ms": 1}, id="queued and ended"),
        pytest.param(DONE | {"ended_ms": None}, id="ok and not ended"),
        pytest.param(DONE | {"state": "error"}, id="error without a reason"),
        pytest.param({"state": "skipped", "ended_ms": 1}, id="skipped without a reason"),
        pytest.param(ACTIVE | {"cancel_ms": 1}, id="cancelled by nobody"),
        pytest.param(ACTIVE | {"cancel_by": "me"}, id="cancelled never"),
        pytest.param({"slot_ms": "soon"}, id="text for a time"),
        pytest.param({"job_id": None}, id="no job"),
    ],
)
def test_illegal_rows_are_refused(fresh: apsw.Connection, values: dict[str, object]) -> None:
    with pytest.raises(apsw.ConstraintError):
        insert(fresh, **values)


@pytest.mark.parametrize("first", [{}, ACTIVE])
@pytest.mark.parametrize("second", [{}, ACTIVE])
def test_one_live_run_per_job(fresh: apsw.Connection, first: dict[str, object], second: dict[str, object]) -> None:
    insert(fresh, **first)
    insert(fresh, **(second | {"run_id": "s", "run_key": "l", "job_id": "another"}))
    with pytest.raises(apsw.ConstraintError):
        insert(fresh, **(second | {"run_id": "t", "run_key": "m"}))
    insert(fresh, **(DONE | {"run_id": "t", "run_key": "m"}))


def test_a_run_id_is_given_once(fresh: apsw.Connection) -> None:
    insert(fresh, **DONE)
    with pytest.raises(apsw.ConstraintError):
        insert(fresh, job_id="another")


def test_a_jobs_state_goes_with_it_and_its_runs_stay(fresh: apsw.Connection) -> None:
    fresh.execute(JOB)
    fresh.execute("INSERT INTO job_state (position) VALUES (1)")
    insert(fresh)
    fresh.execute("DELETE FROM jobs")
    assert fresh.execute("SELECT count(*) FROM job_state").fetchall() == [(0,)]
    assert fresh.execute("SELECT count(*) FROM runs").fetchall() == [(1,)]
    fresh.execute(JOB)
    assert fresh.execute("SELECT position FROM jobs").fetchall() == [(2,)]  # positions are never used again
