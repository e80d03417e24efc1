"""Reports of users of other schedulers, replayed on real processes: duplicates and restarts, shutdown and leases,
sockets and pids. The number in each docstring names the report."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import apsw
import msgspec
import pytest

from cronward.protocol import exits, rundir
from cronward.protocol.errors import Code
from cronward.protocol.identity import own_identity
from cronward.protocol.views import AddResult, JobList, JobView
from tests.support.control import Rejected
from tests.support.installation import NEVER
from tests.support.instance import Instance
from tests.support.waiting import now_ms, wait_until


def power_cut(instance: Instance) -> None:
    """Every process ends at once; the files stay."""
    pids = instance.processes()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    instance.stop()


def kill_daemons(instance: Instance) -> None:
    instance.scheduler.kill()
    instance.launcher.kill()


def started(instance: Instance, label: str) -> int:
    return instance.sidelog.count(f"{label}:start")


def job_view(instance: Instance, job: JobView) -> JobView:
    return instance.client().call("cron.get", JobView, {"id": job.id})


# duplicates and restart


def test_a_run_that_was_cut_off_is_closed_by_the_first_start(instance: Instance) -> None:
    """B097, B145: no second restart is needed, no row stays open, and the next run works."""
    instance.start()
    job = instance.add_command_job(instance.sidelog.command("job", 60_000))
    run_id = instance.run_now(job)
    wait_until(lambda: started(instance, "job") == 1, "it has started")
    power_cut(instance)
    instance.start()
    run = instance.wait_for_run(run_id)
    assert (run.state, run.reason) == ("error", "interrupted")
    assert instance.status().active == 0
    again = instance.run_now(job)
    assert instance.wait_for_run(again, ("active",)).state == "active"
    wait_until(lambda: started(instance, "job") == 2, "it runs again")


def test_a_crash_loop_over_one_slot_starts_it_once_and_keeps_a_row(instance: Instance) -> None:
    """B098."""
    instance.start()
    job = instance.add_at(instance.sidelog.command("job", 60_000), instance.soon_ms(), {"deleteAfterRun": False})
    wait_until(lambda: started(instance, "job") == 1, "the slot fired")
    for _ in range(2):
        power_cut(instance)
        instance.start()
        instance.wait_idle()
        (run,) = instance.runs(job, live=True)
        assert (run.state, run.reason) == ("error", "interrupted")
    assert started(instance, "job") == 1
    assert not job_view(instance, job).enabled, "an interrupted one-shot stays, disabled"


def test_declaring_the_same_jobs_again_and_again(instance: Instance) -> None:
    """B100: an installation that declares its jobs three times, over restarts, has them once, with the same ids."""
    instance.start_scheduler()
    found = []
    for _ in range(3):
        for name in ("a", "b"):
            job = instance.job(["/bin/true"], NEVER, fields={"declarationKey": f"app:{name}", "name": name})
            instance.client().call("cron.add", AddResult, job)
        listed = instance.client().call("cron.list", JobList, {})
        found.append([(job.id, job.name) for job in listed.jobs])
        instance.scheduler.kill()
        instance.start_scheduler()
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 2


def rewrite_definition(instance: Instance, job: JobView, definition: dict[str, object], state: str = "") -> None:
    """As another release left it, and its state; nobody is running."""
    connection = apsw.Connection(str(instance.paths.database))
    text = msgspec.json.encode(definition).decode()
    connection.execute("UPDATE jobs SET definition = ? WHERE job_id = ?", (text, job.id))
    if state:
        connection.execute(f"UPDATE job_state SET {state}")
    connection.close()


def test_a_definition_without_the_newer_fields_fires(instance: Instance) -> None:
    """B101: by its schedule, though the deadline of it, a column, has no value either."""
    instance.start()
    job = instance.add_command_job(["/bin/true"])
    power_cut(instance)
    env = {"TEST_ROOT": str(instance.root)}
    payload = {"kind": "command", "argv": instance.sidelog.command("old"), "env": env}
    schedule = {"kind": "every", "everyMs": 200, "anchorMs": 0}
    rewrite_definition(instance, job, {"name": "old", "schedule": schedule, "payload": payload}, "next_due_ms = NULL")
    instance.start()
    wait_until(lambda: instance.sidelog.count("old") >= 2, "it fires slot by slot")
    view = job_view(instance, job)
    assert (view.enabled, view.flag) == (True, None)
    runs = instance.runs(job)
    assert {(run.kind, run.state) for run in runs} == {("scheduled", "ok")}
    assert all(run.slot_ms % 200 == 0 for run in runs)


def test_a_kind_of_a_newer_release_is_kept_flagged_and_not_run(instance: Instance) -> None:
    """B113: a rollback meets a payload that this release does not know. It is there after the next upgrade, too."""
    instance.start()
    job = instance.add_command_job(["/bin/true"], {"kind": "every", "everyMs": 200})
    other = instance.add_command_job(instance.sidelog.command("other"))
    power_cut(instance)
    cut_ms = now_ms()
    definition: dict[str, object] = {
        "name": "quantum",
        "schedule": {"kind": "every", "everyMs": 200, "anchorMs": 0},
        "payload": {"kind": "quantum", "bits": 3},
    }
    rewrite_definition(instance, job, definition)
    instance.start()
    assert instance.wait_for_run(instance.run_now(other)).state == "ok"
    wait_until(lambda: job_view(instance, job).flag is not None, "it is flagged")
    assert job_view(instance, job).status == "flagged"
    assert not [run for run in instance.runs(job, live=True) if run.slot_ms > cut_ms and run.state != "skipped"]
    power_cut(instance)
    connection = apsw.Connection(str(instance.paths.database))
    (kept,) = connection.execute("SELECT definition FROM jobs WHERE job_id = ?", (job.id,)).fetchone() or ("",)
    connection.close()
    assert msgspec.json.decode(str(kept)) == definition


def test_further_schedulers_over_the_same_database_are_refused(instance: Instance) -> None:
    """B103, B106: whatever they are called, one is active; each start is somebody of its own."""
    instance.start()
    first, instance_name = instance.scheduler, instance.status().instance
    job = instance.add_command_job(instance.sidelog.command("tick"), {"kind": "every", "everyMs": 200})
    for name in ("one", "two"):
        runtime = instance.root / name
        refused = instance.start_scheduler({"CRONWARD_RUNTIME_DIR": str(runtime)}, wait_ready=False)
        assert refused.process.wait(20) == exits.ALREADY_RUNNING
        assert str(first.pid) in refused.log.read_text()
    before = instance.sidelog.count("tick")
    wait_until(lambda: instance.sidelog.count("tick") > before + 3, "the first one goes on")
    ran = [entry.run for entry in instance.sidelog.entries("tick")]
    assert len(ran) == len(set(ran))
    assert job_view(instance, job).enabled
    first.kill()
    instance.start_scheduler()
    assert instance.status().instance != instance_name


def test_no_second_copy_after_a_crash_while_the_first_lives(instance: Instance) -> None:
    """B107, B121: neither after a kill of everything but the run, nor while nobody can ask the launcher."""
    instance.start()
    job = instance.add_command_job(instance.sidelog.command("job", 3000), {"kind": "every", "everyMs": 300})
    wait_until(lambda: started(instance, "job") == 1, "the first copy runs")
    kill_daemons(instance)
    instance.start_scheduler()
    (live,) = instance.runs(job, live=True)
    assert live.state == "active", "without a launcher it is not complete"
    instance.start_launcher()
    instance.wait_reconciled()
    wait_until(lambda: instance.sidelog.count("job:end") == 1, "the first copy ends")
    wait_until(lambda: started(instance, "job") == 2, "then the next slot runs")
    written = [entry.label for entry in instance.sidelog.entries()]
    assert written == ["job:start", "job:end", "job:start"]
    assert instance.wait_for_run(live.run_id).state == "ok"


def test_a_slot_stays_used_though_its_row_is_gone(instance: Instance) -> None:
    """B109: nothing is kept of finished runs, and the service restarts within the same slot."""
    instance.environ["CRONWARD_RETENTION_DAYS"] = "0"
    instance.start()
    anchor_ms = instance.soon_ms(500)
    schedule = {"kind": "every", "everyMs": 3_600_000, "anchorMs": anchor_ms}
    job = instance.add_command_job(instance.sidelog.command("job"), schedule)
    wait_until(lambda: instance.sidelog.count("job") == 1, "the slot fired")
    (entry,) = instance.sidelog.entries("job")
    wait_until(lambda: is_forgotten(instance, entry.run), "its row is gone")
    for stop in (kill_daemons, power_cut, kill_daemons):
        stop(instance)
        instance.start()
        assert job_view(instance, job).next_run_at_ms == anchor_ms + 3_600_000
        instance.wait_idle()
    assert now_ms() < anchor_ms + 3_600_000
    assert instance.runs(live=True) == []
    assert [again.run for again in instance.sidelog.entries("job")] == [entry.run]


def is_forgotten(instance: Instance, run_id: str) -> bool:
    """Whether the ledger does not know the run any more."""
    try:
        instance.run_view(run_id)
    except Rejected as refused:
        return refused.code == Code.RUN_NOT_FOUND
    return False


def test_an_edit_while_the_run_ends_wins_over_the_recovery(instance: Instance) -> None:
    """B110: the run ends while the scheduler is dead; what is recorded then does not undo the edit."""
    instance.start()
    job = instance.add_command_job(instance.sidelog.command("job", 1000), {"kind": "every", "everyMs": 400})
    wait_until(lambda: started(instance, "job") == 1, "it runs")
    hourly = {"kind": "every", "everyMs": 3_600_000}
    edited = instance.client().call("cron.update", JobView, {"id": job.id, "patch": {"schedule": hourly}})
    instance.scheduler.kill()
    wait_until(lambda: instance.sidelog.count("job:end") == 1, "it ends unseen")
    instance.start_scheduler()
    instance.wait_reconciled()
    instance.wait_idle()
    view = job_view(instance, job)
    assert (view.schedule, view.next_run_at_ms) == (edited.schedule, edited.next_run_at_ms)
    assert [run.state for run in instance.runs(job)] == ["ok"]
    assert started(instance, "job") == 1


def test_a_long_interval_fires_on_its_grid_however_often_the_service_restarts(instance: Instance) -> None:
    """B112, B104: killed more often than the interval lasts, though not in the instant of a launch (which is window 3
    or 4); each start needs no cleaning by hand."""
    instance.start()
    every_ms, anchor_ms = 2500, instance.soon_ms(2500)
    schedule = {"kind": "every", "everyMs": every_ms, "anchorMs": anchor_ms}
    job = instance.add_command_job(instance.sidelog.command("job"), schedule)
    end = time.monotonic() + 60
    while instance.sidelog.count("job") < 2:
        assert time.monotonic() < end
        instance.wait_idle()
        kill_daemons(instance)
        instance.start()
    instance.wait_idle()
    slots = [run.slot_ms for run in instance.runs(job)]
    assert len(slots) == len(set(slots)) >= instance.sidelog.count("job")
    assert all((slot - anchor_ms) % every_ms == 0 for slot in slots)


# shutdown and leases


def test_a_quiet_run_is_not_rescued_by_its_age(instance: Instance) -> None:
    """B146: it says nothing while both daemons are replaced twice; only a proof would end it."""
    instance.start()
    run_id = instance.start_job(4000)
    for _ in range(2):
        kill_daemons(instance)
        instance.start()
    assert instance.wait_for_run(run_id).state == "ok"
    assert [entry.label for entry in instance.sidelog.entries()] == ["job:start", "job:end"]


def test_results_that_a_slow_scheduler_did_not_take_are_recorded_after_all(instance: Instance) -> None:
    """B151: everybody who had the results in a socket is dead before the scheduler reads on."""
    count = 24
    instance.environ["CRONWARD_CAPACITY_RUNS"] = str(count)
    instance.start()
    runs = [
        instance.run_now(instance.add_command_job(instance.sidelog.command(f"job{number}", 2000)))
        for number in range(count)
    ]
    wait_until(lambda: all(started(instance, f"job{number}") for number in range(count)), "all run")
    instance.scheduler.pause()
    files = [instance.paths.run_directory(run_id) / rundir.OUTCOME for run_id in runs]
    wait_until(lambda: all(file.exists() for file in files), "all have ended")
    for pid in instance.processes():
        if pid != instance.scheduler.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    instance.launcher.process.wait(10)
    instance.scheduler.resume()
    instance.start_launcher()
    instance.wait_reconciled()
    assert {instance.wait_for_run(run_id).state for run_id in runs} == {"ok"}
    assert instance.sidelog.count("job0:start") == 1


# sockets and pids


@pytest.mark.parametrize("left", ["own", "stranger", "empty", "garbage", "unreadable"])
def test_left_over_lock_files_hinder_nobody(instance: Instance, left: str) -> None:
    """B233: the kernel's lock decides, not what is written in the file."""
    contents = {
        "own": msgspec.json.encode(own_identity()),
        "stranger": b'[1, 1, "0"]',
        "empty": b"",
        "garbage": os.urandom(100),
        "unreadable": b"1",
    }
    for path in (instance.paths.scheduler_lock, instance.paths.launcher_lock, instance.paths.runtime_lock):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(contents[left])
        path.chmod(0o000 if left == "unreadable" else 0o600)
    instance.start()
    assert instance.wait_for_run(instance.run_now(instance.add_command_job(["/bin/true"]))).state == "ok"


def test_a_stale_socket_is_replaced_and_a_live_one_is_not_stolen(instance: Instance) -> None:
    """B236."""
    instance.start()
    instance.scheduler.kill()
    assert instance.paths.control.is_socket()
    first = instance.start_scheduler()
    identity = instance.paths.control.stat().st_ino
    thief = instance.start_scheduler({"CRONWARD_STATE_DIR": str(instance.root / "other")}, wait_ready=False)
    assert thief.process.wait(20) == exits.ALREADY_RUNNING
    assert instance.paths.control.stat().st_ino == identity
    assert instance.status().instance
    assert first.alive


INTRUDER = """
    import os, socket, sys
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    reached = tried = 0
    print("ready", flush=True)
    os.set_blocking(0, False)
    while True:
        for path in sys.argv[1:]:
            with socket.socket(socket.AF_UNIX) as client:
                tried += 1
                try:
                    client.connect(path)
                    reached += 1
                except OSError:
                    pass
        try:
            if os.read(0, 1) == b"":
                break
        except BlockingIOError:
            pass
    print(reached, tried)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_another_user_never_gets_through_while_sockets_are_made(instance: Instance) -> None:
    """B238: there is no moment between bind and chmod. (Fewer starts than in the report.)"""
    instance.root.chmod(0o755)
    paths = instance.paths
    sockets = [paths.control, paths.launch, paths.run, paths.query, paths.events]
    program = textwrap.dedent(INTRUDER)
    with subprocess.Popen(
        [sys.executable, "-I", "-c", program, *map(str, sockets)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as intruder:
        assert intruder.stdout is not None
        assert intruder.stdin is not None
        assert intruder.stdout.readline() == "ready\n"
        for _ in range(5):
            instance.start_scheduler()
            assert _connects(paths.control), "we ourselves get through"
            instance.scheduler.kill()
        intruder.stdin.close()
        reached, tried = map(int, intruder.stdout.readline().split())
    assert reached == 0
    assert tried > 100


def _connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    return True
