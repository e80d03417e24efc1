"""Real processes on a small disk that fills up and is freed again."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.protocol import exits
from cronward.protocol.views import JobList, JobView
from tests.support.control import Rejected
from tests.support.instance import Instance
from tests.support.namespaces import SmallDisk
from tests.support.processes import NotReady
from tests.support.waiting import now_ms, wait_until

DISK_MIB = 8


@pytest.fixture
def small() -> Iterator[Instance]:
    """A service whose state directory is a small disk; the side log is elsewhere."""
    with Instance(disk_mib=DISK_MIB) as instance:
        yield instance


def disk_of(instance: Instance) -> SmallDisk:
    assert instance.disk is not None
    return instance.disk


def fill(instance: Instance) -> str:
    """Fills the disk, and adds jobs until one is refused; its code."""
    disk_of(instance).fill()
    for _ in range(200):
        try:
            instance.add_command_job(["/bin/true"], fields={"description": "x" * 2000})
        except Rejected as refusal:
            return refusal.code
    raise AssertionError("the disk does not get full")


def test_runs_outlive_a_full_disk_and_are_recorded_when_there_is_space(small: Instance) -> None:
    """B148, B149, B176, B179: no restart, nothing lost, nothing twice; what came due meanwhile runs afterwards."""
    small.start()
    pid = small.scheduler.pid
    runs = _started(small, 3)
    due_ms = now_ms() + 1500
    missed = small.add_at(small.sidelog.command("missed"), due_ms, {"deleteAfterRun": False})
    assert fill(small) == "STORAGE_FULL"
    status = small.status()
    assert status.storage_error is not None
    assert small.client().call("cron.list", JobList).total >= 4  # reads are answered
    wait_until(lambda: all(small.sidelog.count(f"run{n}:end") == 1 for n in range(3)), "the running commands end")
    wait_until(lambda: now_ms() > due_ms + 300, "a slot came while the disk was full", deadline_s=10)
    assert [small.run_view(run_id).state for run_id in runs] == ["active"] * 3  # not recorded, and not forgotten
    assert small.sidelog.count("missed") == 0
    disk_of(small).free()
    for run_id in runs:
        assert small.wait_for_run(run_id).state == "ok"
    wait_until(lambda: small.sidelog.count("missed") == 1, "the slot that came meanwhile is served")
    small.wait_idle()
    assert small.status().storage_error is None
    assert [view.state for view in small.runs(missed)] == ["ok"]
    assert [small.sidelog.count(f"run{n}:start") for n in range(3)] == [1, 1, 1]
    assert small.scheduler.alive
    assert small.scheduler.pid == pid
    assert len(small.events("storage.full")) >= 1
    assert small.events("storage.recovered")
    assert small.events("notice.sent") == []


def _started(instance: Instance, count: int) -> list[str]:
    jobs = [instance.add_command_job(instance.sidelog.command(f"run{number}", 2500)) for number in range(count)]
    runs = [instance.run_now(job) for job in jobs]
    wait_until(lambda: all(instance.sidelog.count(f"run{n}:start") == 1 for n in range(count)), "the commands run")
    return runs


def test_a_restart_on_a_full_disk_waits_for_space(small: Instance) -> None:
    """B179: the supervisor's next start recovers; the exit code does not tell it to give up."""
    small.start()
    job = small.add_command_job(["/bin/true"], fields={"name": "kept"})
    assert fill(small) == "STORAGE_FULL"
    small.scheduler.kill()
    with pytest.raises(NotReady, match="STORAGE_FULL"):
        small.start_scheduler()
    assert small.scheduler.process.wait(10) == exits.STORAGE
    assert exits.STORAGE not in exits.PERMANENT
    disk_of(small).free()
    small.start_scheduler()
    assert small.client().call("cron.get", JobView, {"id": job.id}).name == "kept"
    small.wait_reconciled()
    assert small.wait_for_run(small.run_now(job)).state == "ok"


def test_a_launcher_starts_on_a_full_disk(small: Instance) -> None:
    """Its lock needs no new space, and what runs is adopted."""
    small.start()
    (run_id,) = _started(small, 1)
    disk_of(small).fill()
    small.launcher.kill()
    small.start_launcher()
    disk_of(small).free()
    assert small.wait_for_run(run_id).state == "ok"
    assert small.sidelog.count("run0:start") == 1


def test_nobody_else_reads_the_live_database(instance: Instance) -> None:
    """B148, B178: no reader can hold a lock against the scheduler, or keep its log from being written back."""
    instance.start()
    run_id = instance.start_job(800)
    other = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "try:\n    connection.execute('BEGIN EXCLUSIVE')\n    connection.execute('SELECT count(*) FROM jobs')\n"
        "except sqlite3.OperationalError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", other, str(instance.paths.database)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "database is locked\n"
    assert instance.wait_for_run(run_id).state == "ok"


def test_a_stranger_at_the_database_only_delays_a_start(instance: Instance) -> None:
    """B148, B176: a shell that has the file open when the scheduler starts is waited for by the supervisor."""
    instance.start_scheduler()
    job = instance.add_command_job(["/bin/true"])
    instance.scheduler.kill()
    holding = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1])\n"
        "connection.execute('BEGIN EXCLUSIVE')\n"
        "print(1, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", holding, str(instance.paths.database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"1\n"
        with pytest.raises(NotReady, match="DB_INIT_FAILED"):
            instance.start_scheduler()
        assert instance.scheduler.process.wait(10) == exits.STORAGE
        stranger.communicate()
    instance.start_scheduler()
    assert instance.client().call("cron.get", JobView, {"id": job.id}).id == job.id


def test_a_read_only_state_directory_is_said_and_final(tmp_path: Path) -> None:
    """Nothing is changed, and no supervisor tries again until somebody has acted."""
    with Instance(disk_mib=DISK_MIB) as instance:
        instance.start_scheduler()
        instance.scheduler.terminate()
        subprocess.run(
            [*disk_of(instance).prefix(), "mount", "-o", "remount,ro", str(instance.paths.state)], check=True
        )
        with pytest.raises(NotReady, match="STATE_DIR_UNUSABLE"):
            instance.start_scheduler()
        assert instance.scheduler.process.wait(10) == exits.STATE_DIR
        subprocess.run(
            [*disk_of(instance).prefix(), "mount", "-o", "remount,rw", str(instance.paths.state)], check=True
        )
        instance.start_scheduler()


def test_all_jobs_are_there_for_the_first_client(instance: Instance) -> None:
    """B185: whoever asks first, even before the start, sees every job."""
    instance.start_scheduler()
    for number in range(70):
        instance.add_command_job(["/bin/true"], fields={"name": f"job {number}"})
    instance.scheduler.kill()
    client = instance.client()
    instance.start_scheduler(wait_ready=False)
    assert client.call("cron.list", JobList, timeout_s=20).total == 70


def test_damage_that_is_met_ends_the_process_and_no_restart_hides_it(instance: Instance) -> None:
    """B149: the client is told, the process ends with its code, the next start refuses the file, a copy cures it."""
    instance.start_scheduler()
    tokens = [{"requestId": f"token {number}", "description": "x" * 2000} for number in range(20)]
    for token in tokens:
        instance.add_command_job(["/bin/true"], fields=token)
    instance.scheduler.terminate()
    database = instance.paths.database
    sound = instance.root / "sound"
    shutil.copy(database, sound)
    instance.start_scheduler()
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(database.stat().st_size - 4096))
    with pytest.raises(Rejected, match="STORAGE_FAILED"):
        instance.add_command_job(["/bin/true"], fields=tokens[0])
    assert instance.scheduler.process.wait(10) == exits.STORAGE
    assert instance.events("storage.failed")
    with pytest.raises(NotReady, match="DB_INIT_FAILED"):
        instance.start_scheduler()
    assert instance.scheduler.process.wait(10) == exits.DATABASE
    Path(f"{database}-wal").unlink(missing_ok=True)
    shutil.copy(sound, database)
    instance.start_scheduler()
    assert instance.client().call("cron.list", JobList).total == len(tokens)
