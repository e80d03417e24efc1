"""One scheduler as a process: its start and its end, signals, a second one beside it, backups, the event stream."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cronward.protocol import exits, launch
from cronward.protocol.launch import Gone, RunState
from cronward.protocol.views import BackupAnswer, JobView, RunView, ServiceStatus, StatusSnapshot
from tests.support.control import ControlClient, Rejected
from tests.support.instance import Instance
from tests.support.processes import Daemon
from tests.support.scheduler_rig import Listener, ScriptedLauncher
from tests.support.waiting import wait_until


def offline(instance: Instance, *words: str) -> int:
    """`check` or `restore`, to its end; the exit code."""
    command = [sys.executable, "-m", "cronward.scheduler", *words]
    return subprocess.run(command, env=instance.environ, capture_output=True, timeout=20).returncode


def second(instance: Instance, **directories: Path) -> Daemon:
    """Another scheduler that shares a directory with the first one; it has ended."""
    other = instance.start_scheduler(
        {f"CRONWARD_{name.upper()}_DIR": str(path) for name, path in directories.items()}, wait_ready=False
    )
    assert other.process.wait(timeout=10) == exits.ALREADY_RUNNING
    return other


@pytest.mark.parametrize("shared", ["both", "state", "runtime"])
def test_a_second_scheduler_is_refused_and_told_who_is_there(instance: Instance, shared: str) -> None:
    first = instance.start_scheduler()
    elsewhere = {"both": {}, "state": {"runtime": instance.root / "r2"}, "runtime": {"state": instance.root / "s2"}}
    other = second(instance, **elsewhere[shared])
    (line,) = other.events("scheduler.cannot_start")
    assert line["code"] == "ALREADY_RUNNING"
    assert f"process {first.pid}" in str(line["message"])
    assert instance.status().pid == first.pid


def test_an_orderly_end_leaves_one_file_and_the_next_start_checks_nothing(instance: Instance) -> None:
    daemon = instance.start_scheduler()
    instance.add_command_job(["/bin/true"])
    assert daemon.terminate() == exits.OK
    assert not Path(f"{instance.paths.database}-wal").exists()
    assert offline(instance, "check") == exits.OK
    instance.start_scheduler()
    assert instance.status().jobs == 1


def test_a_stop_waits_for_answers_to_launches_in_flight(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    ready.expect(launch.Launch)
    other = scheduler.add_command_job(["/bin/true"])
    scheduler.scheduler.signal(signal.SIGTERM)
    wait_until(lambda: scheduler.status().mode == "stopping", "the scheduler is stopping")
    with pytest.raises(Rejected, match="STOPPING"):
        scheduler.client().call("cron.remove", JobView, {"id": other.id})
    ready.accept(run_id)
    assert scheduler.scheduler.process.wait(timeout=2) == exits.OK
    scheduler.start_scheduler()
    ready.reconcile({run_id: RunState.HELD})
    assert scheduler.run_view(run_id).state == "active"


def test_a_stop_gives_up_on_a_launcher_that_does_not_answer(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    ready.expect(launch.Launch)
    assert scheduler.scheduler.terminate(deadline_s=8) == exits.OK
    scheduler.start_scheduler()
    assert scheduler.run_view(run_id).state == "active"  # asked for by name, not guessed


def test_a_hangup_installs_the_file_and_tells_the_launcher(scheduler: Instance, ready: ScriptedLauncher) -> None:
    file = scheduler.root / "cronward.toml"

    def hang_up(text: str) -> None:
        file.write_text(text)
        scheduler.scheduler.signal(signal.SIGHUP)

    hang_up("[capacity]\nruns = 3\n[executors]\nready = 5\n")
    assert ready.expect(launch.Configure).config.ready == 5
    assert (scheduler.status().capacity, scheduler.status().config_error) == (3, None)
    hang_up("[capacity]\nruns = 'many'\n")
    scheduler.wait_event("config.refused")
    bad = scheduler.status()
    assert (bad.capacity, bad.config_version) == (3, 2)
    assert "capacity.runs" in (bad.config_error or "")
    hang_up("store_key = 'other'\n[capacity]\nruns = 4\n")
    ready.expect(launch.Configure)
    kept = scheduler.status()
    assert kept.capacity == 4
    assert "store_key" in (kept.config_error or "")
    file.unlink()
    assert scheduler.client().call("service.reload", ServiceStatus).config_error is not None
    assert scheduler.status().capacity == 4


def test_a_bad_configuration_is_one_line_and_its_exit_code(instance: Instance) -> None:
    (instance.root / "cronward.toml").write_text("[capacity]\nruns = 0\n")
    daemon = instance.start_scheduler(wait_ready=False)
    assert daemon.process.wait(timeout=10) == exits.CONFIG
    (line,) = daemon.lines()
    assert "capacity.runs" in str(line["message"])


def test_a_backup_of_a_busy_scheduler_is_whole(scheduler: Instance, ready: ScriptedLauncher) -> None:
    for _ in range(300):
        scheduler.add_command_job(["/bin/true", "x" * 8000])
    live = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    ready.accept_one()
    backup = scheduler.root / "backup.db"
    with ControlClient(scheduler.paths.control) as writer, ControlClient(scheduler.paths.control) as asker:
        asker.send("service.backup", {"path": str(backup)})
        written = 0
        while not backup.exists():
            writer.call("cron.add", JobView, scheduler.job(["/bin/true"]))
            written += 1
        answer = asker.receive()
    assert answer.ok
    made = msgspec.json.decode(answer.payload, type=BackupAnswer)
    assert (made.path, made.bytes) == (str(backup), backup.stat().st_size)
    assert backup.stat().st_mode & 0o777 == 0o600
    with pytest.raises(Rejected, match="INVALID_REQUEST"):
        scheduler.client().call("service.backup", BackupAnswer, {"path": str(backup)})
    assert offline(scheduler, "check", str(backup)) == exits.OK
    assert offline(scheduler, "restore", str(backup)) == exits.ALREADY_RUNNING
    assert scheduler.scheduler.terminate() == exits.OK
    assert offline(scheduler, "restore", str(backup)) == exits.OK
    scheduler.start_scheduler()
    status = scheduler.status()
    assert 301 <= status.jobs <= 301 + written
    assert (scheduler.run_view(live).state, scheduler.run_view(live).reason) == ("error", "interrupted")


@pytest.mark.parametrize("path", ["relative.db", "/nowhere/at/all.db", "/tmp/a\0b", "/tmp/" + "x" * 300])
def test_a_backup_that_cannot_be_written_is_refused(scheduler: Instance, path: str) -> None:
    with pytest.raises(Rejected) as caught:
        scheduler.client().call("service.backup", BackupAnswer, {"path": path})
    assert caught.value.code in ("INVALID_REQUEST", "BACKUP_FAILED")
    assert [line for line in scheduler.scheduler.lines() if line["level"] == "error"] == []


def test_an_empty_or_foreign_file_is_no_backup(instance: Instance) -> None:
    instance.start_scheduler().terminate()
    before = instance.paths.database.read_bytes()
    for name, data in (("empty", b""), ("text", b"hello " * 1000)):
        file = instance.root / name
        file.write_bytes(data)
        assert offline(instance, "check", str(file)) == exits.DATABASE
        assert offline(instance, "restore", str(file)) != exits.OK
    assert instance.paths.database.read_bytes() == before
    assert offline(instance, "check", str(instance.root / "nothing")) == exits.ERROR


def test_a_check_of_nothing_makes_nothing(instance: Instance) -> None:
    assert offline(instance, "check") != exits.OK
    assert not instance.paths.database.exists()


def test_events_have_no_gaps_and_a_snapshot_says_where_they_go_on(scheduler: Instance, ready: ScriptedLauncher) -> None:
    with Listener(scheduler.paths) as listener, ControlClient(scheduler.paths.query) as query:
        listener.wait_for("tick")
        snapshot = query.call("status.snapshot", StatusSnapshot)
        assert snapshot.service.launcher.state == "ready"
        job = scheduler.add_command_job(["/bin/true", "x" * 200_000])  # an event can hold a whole job
        run_id = scheduler.run_now(job)
        ready.accept_one()
        ready.say(launch.Exited(run_id, Gone.INTERRUPTED, None))
        ready.expect(launch.Ack)
        listener.wait_for("notice")
        numbers = [event.seq for event in listener.events]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert {event.instance for event in listener.events} == {snapshot.instance}
        told = [event.payload for event in listener.events if b'"runId"' in bytes(event.payload)]
        views = [msgspec.json.decode(payload, type=RunView) for payload in told]
        assert [view.action for view in views] == ["queued", "started", "finished"]
        later = query.call("status.snapshot", StatusSnapshot)
        assert later.seq >= numbers[-1]
        assert later.live == []


def test_lost_directories_of_a_first_start_are_made(instance: Instance) -> None:
    for directory in (instance.paths.state, instance.paths.runtime):
        assert not directory.exists()
    instance.start_scheduler()
    for directory in (instance.paths.state, instance.paths.runtime):
        assert directory.stat().st_mode & 0o707 == 0o700
    instance.scheduler.kill()
    shutil.rmtree(instance.paths.runtime)
    instance.start_scheduler()
    assert instance.status().jobs == 0
