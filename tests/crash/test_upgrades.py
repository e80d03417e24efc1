"""Another release beside this one: peers that know fewer fields or more, run directories and databases that it left,
and a backup that is taken and restored."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec
import pytest

from cronward.protocol import exits, ids, launch, outcome, pair, run, rundir
from cronward.protocol.errors import Code, StartupError
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.launch import Gone
from cronward.protocol.version import WIRE
from cronward.protocol.views import BackupAnswer, JobList, JobView
from cronward.scheduler import database, queries
from tests.support.instance import Instance
from tests.support.scheduler_bench import EXECUTOR, KEY, LAUNCHER, Bench
from tests.support.waiting import wait_until

WHO = ProcessIdentity(7, 8, "boot-a")
MINIMAL: list[tuple[msgspec.Struct, Callable[[bytes], object]]] = [
    (launch.Register(WHO, "0"), launch.decode_from_launcher),
    (launch.Refused("r", launch.RefuseReason.LEAVING), launch.decode_from_launcher),
    (launch.Exited("r", Gone.INTERRUPTED, None), launch.decode_from_launcher),
    (launch.Heartbeat("i", 1, launch.GatewayState.NONE, launch.PoolState()), launch.decode_from_launcher),
    (
        launch.Launch("i", 1, "r", "k", b"{}", rundir.Limits(1, 2, 3, 4, 5, 6), "s", "/bin"),
        launch.decode_to_launcher,
    ),
    (run.Hello("r", "s", 1), run.decode_from_executor),
    (run.Report("r", "s", b"o"), run.decode_from_executor),
    (run.HelloAnswer("r", "i"), run.decode_to_executor),
    (outcome.Outcome("r", outcome.Status.OK, None, "", 1, 2, 3), outcome.decode),
]
"""Messages and files whose newest fields have their defaults."""


def older(message: msgspec.Struct) -> bytes:
    """As a release wrote it that did not know the fields with defaults."""
    parts = msgspec.msgpack.decode(msgspec.msgpack.encode(message))
    defaults = len(message.__struct_defaults__)
    return msgspec.msgpack.encode(parts[: len(parts) - defaults])


def newer(message: msgspec.Struct) -> bytes:
    """As a release writes it that knows two fields more."""
    return msgspec.msgpack.encode([*msgspec.msgpack.decode(msgspec.msgpack.encode(message)), "later", {"a": 1}])


@pytest.mark.parametrize(("message", "decode"), MINIMAL, ids=lambda part: type(part).__name__)
def test_fields_that_an_older_release_did_not_know_have_their_defaults(
    message: msgspec.Struct, decode: Callable[[bytes], object]
) -> None:
    assert len(older(message)) < len(msgspec.msgpack.encode(message))
    assert decode(older(message)) == message
    assert decode(newer(message)) == message


# peers


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("written", [older, newer])
def test_an_executor_of_another_release_finishes_its_run_under_this_scheduler(
    bench: Bench, written: Callable[[msgspec.Struct], bytes]
) -> None:
    bench.reconcile()
    run_id = bench.start(bench.add())
    secret = ids.run_secret(KEY, run_id)
    body = written(bench.outcome(run_id))
    for message in (run.Hello(run_id, secret, 5), run.Report(run_id, secret, body)):
        bench.ports.batch.run.append((EXECUTOR, written(message)))
        bench.turn()
    answers = [run.decode_to_executor(frames[-1]) for frames in bench.ports.run_wire.sent]
    assert answers == [run.HelloAnswer(run_id, bench.world.instance), run.Recorded(run_id)]
    assert bench.states() == {run_id: "ok"}


@pytest.mark.parametrize("wire", [WIRE - 1, WIRE + 1])
def test_a_launcher_of_another_wire_version_is_welcome(bench: Bench, wire: int) -> None:
    """What it says is judged message by message; what this release does not know at all is dropped with a line."""
    message = launch.Register(WHO, "another", wire)
    bench.ports.batch.launch += [(LAUNCHER, newer(message)), (LAUNCHER, msgspec.msgpack.encode([19, "unknown"]))]
    bench.turn()
    (welcome,) = bench.orders(launch.Welcome)
    inventory = launch.Inventory(welcome.instance, welcome.epoch, {})
    bench.ports.batch.launch.append((LAUNCHER, newer(inventory)))
    bench.turn()
    assert bench.orders(launch.Reconciled) == [launch.Reconciled(welcome.instance, welcome.epoch)]
    run_id = bench.start(bench.add())
    exited = launch.Exited(run_id, Gone.REPORTED, older(bench.outcome(run_id)))
    bench.ports.batch.launch.append((LAUNCHER, older(exited)))
    bench.turn()
    assert bench.states() == {run_id: "ok"}


def test_packets_of_a_newer_launcher_are_read() -> None:
    packet = pair.HandOver("r", "/d", "s")
    assert pair.decode_to_executor(newer(packet)) == packet


# run directories


def test_run_directories_of_the_previous_release_are_settled(instance: Instance) -> None:
    """One with an outcome, one whose executor lives on, one whose executor is dead: all written with fewer fields."""
    instance.start()
    runs = {
        label: instance.run_now(instance.add_command_job(instance.sidelog.command(label, stay_ms)))
        for label, stay_ms in (("done", 300), ("alive", 4000), ("dead", 60_000))
    }
    directories = {label: instance.paths.run_directory(run_id) for label, run_id in runs.items()}
    wait_until(lambda: all(instance.sidelog.count(f"{label}:start") for label in runs), "all have started")
    instance.scheduler.kill()
    instance.launcher.kill()
    saved = directories["done"] / rundir.OUTCOME
    wait_until(saved.exists, "one has ended")
    pids = {label: _rewrite_intent(directory) for label, directory in directories.items()}
    for label in ("done", "dead"):
        os.kill(pids[label], signal.SIGKILL)
    sealed = outcome.decode(rundir.unseal(saved.read_bytes(), rundir.OUTCOME))
    saved.write_bytes(rundir.seal(older(sealed)))
    instance.start()
    instance.wait_idle()
    found = {
        label: (instance.run_view(run_id).state, instance.run_view(run_id).reason) for label, run_id in runs.items()
    }
    assert found == {"done": ("ok", None), "alive": ("ok", None), "dead": ("error", "interrupted")}
    assert all(instance.sidelog.count(f"{label}:start") == 1 for label in runs)


def _rewrite_intent(directory: Path) -> int:
    """Leaves out the newest fields; the pid of the run's executor."""
    path = directory / rundir.INTENT
    intent = rundir.decode_intent(path.read_bytes())
    path.write_bytes(rundir.seal(older(intent)))
    return intent.executor.pid


# databases


NEXT = database.SCHEMA_VERSION + 1
MIGRATION = "CREATE TABLE novelty (id INTEGER PRIMARY KEY) STRICT; INSERT INTO novelty SELECT position FROM jobs;"


@pytest.fixture
def old_database(tmp_path: Path) -> Path:
    """A database as this release leaves it, with a job."""
    bench = Bench(tmp_path)
    bench.add(name="kept")
    bench.close()
    return bench.paths.database


def _as_next_release(monkeypatch: pytest.MonkeyPatch, migrations: Path, sql: str) -> None:
    """The next release: a higher schema version and one more migration."""
    migrations.mkdir()
    (migrations / f"{NEXT:04}.sql").write_text(sql)
    monkeypatch.setattr(database, "SCHEMA_VERSION", NEXT)
    monkeypatch.setattr(queries, "MIGRATIONS", migrations)


def test_an_older_database_is_migrated(old_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _as_next_release(monkeypatch, tmp_path / "migrations", MIGRATION)
    for _ in range(2):  # the second time there is nothing to do
        connection = database.open_database(old_database)
        assert connection.pragma("user_version") == NEXT
        assert connection.execute("SELECT count(*) FROM novelty").fetchone() == (1,)
        database.close_database(connection)


@pytest.mark.parametrize("sql", [MIGRATION + "SELECT no_such_function();", MIGRATION + "CREATE TABLE jobs (x);"])
def test_a_migration_that_fails_leaves_every_byte(
    old_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    before = old_database.read_bytes()
    _as_next_release(monkeypatch, tmp_path / "migrations", sql)
    with pytest.raises(StartupError) as caught:
        database.open_database(old_database)
    assert (caught.value.code, caught.value.details["phase"]) == (Code.DB_INIT_FAILED, "migration")
    assert caught.value.exit_code == exits.DATABASE
    assert old_database.read_bytes() == before
    monkeypatch.undo()
    connection = database.open_database(old_database)  # the old release goes on with it
    assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (1,)
    database.close_database(connection)


def test_a_migration_that_was_cut_off_is_done_again(
    old_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies in the middle: what it wrote was never committed."""
    connection = apsw.Connection(str(old_database))
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE novelty (id INTEGER PRIMARY KEY) STRICT")
    connection.close()
    _as_next_release(monkeypatch, tmp_path / "migrations", MIGRATION)
    connection = database.open_database(old_database)
    assert connection.execute("SELECT count(*) FROM novelty").fetchone() == (1,)
    database.close_database(connection)


# backup


def test_a_backup_under_load_is_sound_and_can_be_restored(instance: Instance) -> None:
    """It is of one moment: what was finished then is in it, what was live then is never started from it."""
    instance.start()
    for number in range(4):
        command = instance.sidelog.command(f"tick{number}")
        instance.add_command_job(command, {"kind": "every", "everyMs": 150}, fields={"name": f"tick{number}"})
    instance.add_command_job(["/bin/true"], fields={"name": "kept"})
    live = instance.start_job(60_000)
    wait_until(lambda: len(instance.sidelog.entries()) > 20, "there is a load")
    before = {finished.run_id for finished in instance.runs()}
    file = instance.root / "backup.db"
    client = instance.client()
    assert client.call("service.backup", BackupAnswer, {"path": str(file)}).path == str(file)
    wait_until(lambda: len(instance.sidelog.entries()) > 30, "the load goes on")
    assert _offline(instance, "check", str(file)) == exits.OK
    for job in client.call("cron.list", JobList, {"limit": 200}).jobs:
        client.call("cron.update", JobView, {"id": job.id, "patch": {"enabled": False}})
    instance.scheduler.terminate()
    instance.launcher.terminate()
    assert _offline(instance, "restore", str(file)) == exits.OK
    instance.start()
    restored = {finished.run_id: finished for finished in instance.runs()}
    assert before <= restored.keys()
    assert (restored[live].state, restored[live].reason) == ("error", "interrupted")
    assert client.call("cron.get", JobView, {"id": "kept"}).name == "kept"
    assert instance.sidelog.count("job:start") == 1
    ran = [entry.run for entry in instance.sidelog.entries() if entry.run in before]
    assert len(ran) == len(set(ran))


def _offline(instance: Instance, *words: str) -> int:
    command = [sys.executable, "-m", "cronward.scheduler", *words]
    return subprocess.run(command, env=instance.environ, stderr=subprocess.DEVNULL, timeout=60, check=False).returncode
