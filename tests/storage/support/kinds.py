"""The kinds of transactions: how each comes about, and what it is for. Peers repeat themselves, so `act` may too."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from cronward.protocol import launch, run
from cronward.protocol.config import Config, Retention
from cronward.protocol.ids import run_secret
from cronward.protocol.outcome import Reason, Status, encode
from cronward.protocol.views import JobView
from cronward.scheduler import database, life, queries
from cronward.scheduler.store import Value
from cronward.scheduler.world import Turn
from tests.storage.support.rig import Rig
from tests.support.scheduler_bench import EXECUTOR, KEY, LAUNCHER

MINUTE = 60_000
HOUR = 3_600_000
NEVER = {"kind": "every", "everyMs": 365 * 24 * HOUR}
COMMAND = {"kind": "command", "argv": ["/bin/true"]}

Step = Callable[[Rig], None]


class Kind(msgspec.Struct, frozen=True):
    """`arrange` before the fault, `act` during it and again after it, `done` says that it came to its end.

    `opens`: it is the opening or closing of the database, so its life ends with it, as a start that fails may.
    `builds`: it makes or migrates the schema."""

    name: str
    arrange: Step
    act: Step
    done: Step
    config: Config | None = None
    opens: bool = False
    builds: bool = False


def _one(rig: Rig, text: str, *values: Value) -> Value:
    rows = rig.sql(text, *values)
    return rows[0][0] if rows else None


def _nothing(rig: Rig) -> None:
    """There is nothing to arrange, or to look for."""


def _named(rig: Rig, name: str) -> str:
    found = _one(rig, "SELECT job_id FROM jobs WHERE name = ?", name)
    assert isinstance(found, str), f"there is no job {name}"
    return found


def _state(rig: Rig, name: str) -> Value:
    """Of the newest run of the job that has, or had, this name."""
    return _one(rig, "SELECT state FROM runs WHERE job_name = ? ORDER BY arrival DESC LIMIT 1", name)


def _run_of(rig: Rig, name: str) -> str:
    found = _one(rig, "SELECT run_id FROM runs WHERE job_name = ? ORDER BY arrival DESC LIMIT 1", name)
    assert isinstance(found, str), f"job {name} has no run"
    return found


def _until(rig: Rig, at_ms: int) -> None:
    rig.turn(max(0, at_ms - rig.clock.wall))
    rig.turns()


# jobs


def _add(rig: Rig) -> None:
    rig.request("cron.add", {"name": "new", "schedule": NEVER, "payload": COMMAND})


def _added(rig: Rig) -> None:
    _named(rig, "new")


def _add_once(rig: Rig) -> None:
    rig.request("cron.add", {"name": "new", "schedule": NEVER, "payload": COMMAND, "requestId": "token"})


def _added_once(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM jobs WHERE name = 'new'") == 1
    answers = [answer for asked, answer in rig.answers() if asked.params.get("requestId") == "token" and answer.ok]
    assert isinstance(answers[-1].payload, msgspec.Raw)
    assert msgspec.json.decode(answers[-1].payload, type=JobView).id == _named(rig, "new")


def _job(rig: Rig) -> None:
    rig.add(name="mine")


def _update(rig: Rig) -> None:
    patch = {"schedule": {"kind": "every", "everyMs": HOUR}, "description": "changed"}
    rig.request("cron.update", {"id": _named(rig, "mine"), "patch": patch})


def _updated(rig: Rig) -> None:
    assert _one(rig, "SELECT instr(definition, 'changed') > 0 FROM jobs WHERE name = 'mine'") == 1


def _job_with_request(rig: Rig) -> None:
    rig.run_now(rig.add(name="mine"))


def _remove(rig: Rig) -> None:
    found = _one(rig, "SELECT job_id FROM jobs WHERE name = 'mine'")
    if found is not None:
        rig.request("cron.remove", {"id": found})


def _removed(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM jobs WHERE name = 'mine'") == 0
    assert _state(rig, "mine") in ("skipped", "active", "error")


def _run(rig: Rig) -> None:
    rig.request("cron.run", {"id": _named(rig, "mine"), "mode": "force", "requestId": "run-token"})


def _requested(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM runs WHERE job_name = 'mine'") == 1


def _pause(rig: Rig) -> None:
    rig.request("service.pause")


def _paused(rig: Rig) -> None:
    assert rig.world.mode == "paused"
    assert _one(rig, "SELECT count(*) FROM meta WHERE key = 'paused_by'") == 1


# runs

_SLOT_MS = 1_800_000_000_000 + 10 * MINUTE


def _due_jobs(rig: Rig) -> None:
    rig.reconcile_truly()
    for name in ("one", "two", "broken"):
        rig.add({"kind": "at", "at": str(_SLOT_MS)}, name=name)
    rig.connection.execute("UPDATE jobs SET definition = '{\"broken' WHERE name = 'broken'")


def _slot_comes(rig: Rig) -> None:
    _until(rig, _SLOT_MS)


def _slot_requested(rig: Rig) -> None:
    assert _one(rig, "SELECT group_concat(job_name) FROM runs WHERE slot_ms = ?", _SLOT_MS) in ("one,two", "two,one")
    assert _one(rig, "SELECT flag IS NOT NULL FROM job_state JOIN jobs USING (position) WHERE name = 'broken'")


def _queued_run(rig: Rig) -> None:
    rig.reconcile_truly()
    rig.run_now(rig.add(name="mine"))


def _activate(rig: Rig) -> None:
    rig.turns()


def _activated(rig: Rig) -> None:
    rig.note_launches()
    run_id = _run_of(rig, "mine")
    if run_id in rig.launched:
        assert _state(rig, "mine") == "active"
    else:
        assert _one(rig, "SELECT reason FROM runs WHERE run_id = ?", run_id) == "launch_lost"


def _active_runs(rig: Rig) -> None:
    """A one-shot and a job that comes again, both active."""
    rig.reconcile_truly()
    rig.at(MINUTE, name="once")
    rig.every(MINUTE, name="often")
    rig.turn(MINUTE)
    rig.turns()
    assert (_state(rig, "once"), _state(rig, "often")) == ("active", "active")


def _reports(rig: Rig, status: Status, reason: Reason | None) -> None:
    for name in ("once", "often"):
        run_id = _run_of(rig, name)
        report = run.Report(run_id, run_secret(KEY, run_id), encode(rig.outcome(run_id, status, reason)))
        rig.ports.batch.run.append((EXECUTOR, run.encode(report)))
    rig.turn()


def _ends_well(rig: Rig) -> None:
    _reports(rig, Status.OK, None)


def _ended_well(rig: Rig) -> None:
    assert (_state(rig, "once"), _state(rig, "often")) == ("ok", "ok")
    assert _one(rig, "SELECT count(*) FROM jobs WHERE name = 'once'") == 0


def _fails(rig: Rig) -> None:
    _reports(rig, Status.ERROR, Reason.EXIT_CODE)


def _failed(rig: Rig) -> None:
    assert (_state(rig, "once"), _state(rig, "often")) == ("error", "error")


def _cancel(rig: Rig) -> None:
    rig.request("run.cancel", {"runId": _run_of(rig, "mine"), "why": "test"})


def _cancelled(rig: Rig) -> None:
    cancelled = "SELECT cancel_ms IS NOT NULL OR reason IN ('cancelled', 'launch_lost') FROM runs WHERE run_id = ?"
    assert _one(rig, cancelled, _run_of(rig, "mine"))


def _active_run(rig: Rig) -> None:
    rig.reconcile_truly()
    rig.start(rig.add(name="mine"))


def _lost_launch(rig: Rig) -> None:
    """Launched, never answered; both daemons were killed."""
    rig.accepting = False
    _active_run(rig)
    rig.note_launches()
    rig.lost.add(_run_of(rig, "mine"))
    rig.crash()
    rig.accepting = True


def _inventory(rig: Rig) -> None:
    rig.reconcile_truly()


def _settled_as_lost(rig: Rig) -> None:
    assert _one(rig, "SELECT reason FROM runs WHERE run_id = ?", _run_of(rig, "mine")) == "launch_lost"
    assert _one(rig, "SELECT count(*) FROM notices WHERE instr(runs, ?)", _run_of(rig, "mine")) == 1


def _notice(rig: Rig) -> None:
    _lost_launch(rig)
    _inventory(rig)


def _tick(rig: Rig) -> None:
    for _ in range(3):
        rig.turn(1000)


def _notice_sent(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM notices WHERE sent_ms IS NULL") == 0


def _batch(rig: Rig) -> None:
    """Garbage, peers and clients in one commit."""
    rig.ports.batch.run.append((EXECUTOR, b"\xc1 garbage"))
    rig.ports.batch.launch.append((LAUNCHER, b"\xc1 garbage"))
    rig.ports.batch.launch.append((LAUNCHER, launch.encode(launch.Accepted("nobody", 1))))
    for name in ("new", "second"):
        rig.post("cron.add", {"name": name, "schedule": NEVER, "payload": COMMAND, "requestId": f"token-{name}"})
    rig.post("cron.add", {"name": "poison", "schedule": "nonsense"})
    rig.post("cron.list")
    _reports(rig, Status.OK, None)


def _batch_done(rig: Rig) -> None:
    _ended_well(rig)
    assert _one(rig, "SELECT count(*) FROM jobs WHERE name IN ('new', 'second')") == 2


# upkeep

_KEEP_ONE = Config(retention=Retention(days=1, runs_per_job=1))


def _history(rig: Rig) -> None:
    rig.reconcile_truly()
    job = rig.add(name="mine")
    for _ in range(3):
        rig.report(rig.start(job))


def _forgotten(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM runs WHERE job_name = 'mine' AND forget_ms IS NULL") == 1


def _marked(rig: Rig) -> None:
    _history(rig)
    _tick(rig)


def _directories_gone(rig: Rig) -> None:
    names = [str(row[0]) for row in rig.sql("SELECT run_id FROM runs WHERE forget_ms IS NOT NULL")]
    rig.tell(launch.Forgotten(names))


def _rows_gone(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM runs WHERE job_name = 'mine'") == 1


def _old_rows(rig: Rig) -> None:
    rig.connection.execute("INSERT INTO requests VALUES ('old', 'cron.add', '{}', 0)")


def _hour(rig: Rig) -> None:
    rig.turn(HOUR)


def _pruned(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM requests WHERE request_id = 'old'") == 0


def _small_log(rig: Rig) -> None:
    rig.connection.pragma("wal_autocheckpoint", 12)


def _several(rig: Rig) -> None:
    for number in range(3):
        params = {"name": f"job {number}", "schedule": NEVER, "payload": COMMAND, "requestId": f"token {number}"}
        rig.request("cron.add", params)


def _several_added(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM jobs WHERE name LIKE 'job _'") == 3


def _backup_path(rig: Rig) -> Path:
    return rig.paths.state / f"backup-{len(list(rig.paths.state.glob('backup-?')))}"


def _backup(rig: Rig) -> None:
    rig.post("service.backup", {"path": str(_backup_path(rig))})
    before = len(rig.ports.answers)
    for _ in range(50):
        rig.turn()
        if len(rig.ports.answers) > before:
            return
    raise AssertionError("the backup is not answered")


def _backed_up(rig: Rig) -> None:
    assert any(asked.method == "service.backup" and answer.ok for asked, answer in rig.answers())
    assert list(rig.paths.state.glob("*.part")) == []


# opening and closing


def _stop(rig: Rig) -> None:
    rig.end()


def _begin(rig: Rig) -> None:
    rig.begin()


def _began(rig: Rig) -> None:
    assert _one(rig, "SELECT count(*) FROM lives WHERE instance = ?", rig.world.instance) == 1


def _end_of_life(rig: Rig) -> None:
    rig.store.begin()
    life.end(Turn(rig.world, rig.store))
    rig.store.commit()
    database.close_database(rig.connection)


def _no_file(rig: Rig) -> None:
    rig.end()
    rig.paths.database.unlink()


def _schema_complete(rig: Rig) -> None:
    _began(rig)
    assert rig.connection.pragma("user_version") == database.SCHEMA_VERSION


def _old_schema(rig: Rig) -> None:
    """The next release has one more migration, which rebuilds a table."""
    _job(rig)
    rig.end()
    next_version = database.SCHEMA_VERSION + 1
    migration = (
        "CREATE TABLE added (x INTEGER NOT NULL) STRICT;"
        "INSERT INTO added SELECT position FROM jobs;"
        "ALTER TABLE jobs ADD COLUMN extra TEXT;"
    )
    directory = rig.paths.state / "migrations"
    directory.mkdir()
    (directory / f"{next_version:04}.sql").write_text(migration)
    rig.plant(database, "SCHEMA_VERSION", next_version)
    rig.plant(queries, "MIGRATIONS", directory)


def _migrated(rig: Rig) -> None:
    assert rig.connection.pragma("user_version") == database.SCHEMA_VERSION
    assert _one(rig, "SELECT (SELECT count(*) FROM added) = (SELECT count(*) FROM jobs)") == 1
    _named(rig, "mine")


KINDS = (
    Kind("schema", _no_file, _begin, _schema_complete, opens=True, builds=True),
    Kind("migration", _old_schema, _begin, _migrated, opens=True, builds=True),
    Kind("begin life", _stop, _begin, _began, opens=True),
    Kind("end life", _job, _end_of_life, _nothing, opens=True),
    Kind("add", _nothing, _add, _added),
    Kind("add with requestId", _nothing, _add_once, _added_once),
    Kind("update", _job, _update, _updated),
    Kind("remove", _job_with_request, _remove, _removed),
    Kind("run by hand", _job, _run, _requested),
    Kind("pause", _nothing, _pause, _paused),
    Kind("due (commit A)", _due_jobs, _slot_comes, _slot_requested),
    Kind("activate (commit B)", _queued_run, _activate, _activated),
    Kind("outcome (commit C)", _active_runs, _ends_well, _ended_well),
    Kind("failure (commit C)", _active_runs, _fails, _failed),
    Kind("cancel queued", _job_with_request, _cancel, _cancelled),
    Kind("cancel active", _active_run, _cancel, _cancelled),
    Kind("launch lost", _lost_launch, _inventory, _settled_as_lost),
    Kind("notice", _notice, _tick, _notice_sent),
    Kind("batch with poison", _active_runs, _batch, _batch_done),
    Kind("retention marks", _history, _tick, _forgotten, _KEEP_ONE),
    Kind("retention deletes", _marked, _directories_gone, _rows_gone, _KEEP_ONE),
    Kind("pruning", _old_rows, _hour, _pruned),
    Kind("checkpoint", _small_log, _several, _several_added),
    Kind("backup", _job, _backup, _backed_up),
)
