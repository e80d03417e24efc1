"""What goes wrong in run directories, on disk and around them: each case ends in a truthful record.

Real processes throughout; what the commands did is known from the log that they write themselves.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from cronward.protocol import identity, rundir
from cronward.protocol.views import CancelAnswer, JobView
from tests.support import failpoints
from tests.support.instance import Instance
from tests.support.namespaces import OtherBoot
from tests.support.processes import state
from tests.support.shifted_clock import ShiftedClock
from tests.support.waiting import wait_until

KEPT = 100_000
MORE = 300_000
UNTIL_FLAG = f"head -c {KEPT} /dev/zero; until [ -e $0 ]; do sleep 0.02; done; head -c {MORE} /dev/zero"
"""Writes, waits for the file that $0 names, and writes more."""


def executor_of(directory: Path) -> int:
    return rundir.decode_intent((directory / rundir.INTENT).read_bytes()).executor.pid


def started(instance: Instance, label: str, stay_ms: int) -> str:
    """A run that has written `label:start`."""
    run_id = instance.run_now(instance.add_command_job(instance.sidelog.command(label, stay_ms)))
    wait_until(lambda: instance.sidelog.count(f"{label}:start") == 1, f"{label} has started")
    return run_id


def power_cut(instance: Instance) -> None:
    """Every process ends at once; the files stay."""
    pids = instance.processes()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    instance.stop()


# a disk that is full


@pytest.fixture
def full(tmp_path: Path) -> Iterator[tuple[Instance, str]]:
    """A run that has ended on a full disk: neither the rest of its output nor its outcome could be written."""
    with Instance({"CRONWARD_CAPACITY_RUNS": "1"}, disk_mib=8) as instance:
        instance.start()
        flag = instance.root / "flag"
        job = instance.add_command_job(["/bin/sh", "-c", UNTIL_FLAG, str(flag)])
        run_id = instance.run_now(job)
        disk = instance.disk
        assert disk is not None
        output = disk.outside(instance.paths.run_directory(run_id) / rundir.STDOUT)
        wait_until(lambda: output.exists() and output.stat().st_size == KEPT, "the first part is in the file")
        disk.fill()
        flag.touch()
        instance.wait_event("executor.output_lost")
        instance.wait_event("executor.outcome_not_saved")
        yield instance, run_id


def test_a_disk_that_is_full_while_output_and_outcome_are_written(full: tuple[Instance, str]) -> None:
    instance, run_id = full
    assert instance.disk is not None
    assert instance.run_view(run_id).state == "active"
    instance.disk.free()
    run = instance.wait_for_run(run_id)
    assert run.state == "ok"
    assert run.stdout is not None
    assert (run.stdout.written, run.stdout.truncated) == (KEPT + MORE, True)
    kept = instance.disk.outside(instance.paths.run_directory(run_id) / rundir.STDOUT).stat().st_size
    assert KEPT <= kept == run.stdout.kept < KEPT + MORE


def test_an_executor_that_dies_with_an_outcome_that_could_not_be_saved(full: tuple[Instance, str]) -> None:
    instance, run_id = full
    assert instance.disk is not None
    os.kill(executor_of(instance.disk.outside(instance.paths.run_directory(run_id))), signal.SIGKILL)
    instance.wait_event("run.interrupted")
    assert instance.run_view(run_id).state == "active", "nothing can be recorded yet"
    instance.disk.free()
    run = instance.wait_for_run(run_id)
    assert (run.state, run.reason) == ("error", "interrupted")


def test_a_launcher_that_is_killed_meanwhile_costs_nothing(full: tuple[Instance, str]) -> None:
    instance, run_id = full
    assert instance.disk is not None
    instance.launcher.kill()
    instance.disk.free()
    assert instance.wait_for_run(run_id).state == "ok"
    instance.start_launcher()
    instance.wait_reconciled()
    assert instance.run_view(run_id).state == "ok"


# files that are cut, foreign or unreadable


def _cut(path: Path, other: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _garbage(path: Path, other: Path) -> None:
    path.write_bytes(os.urandom(200))


def _empty(path: Path, other: Path) -> None:
    path.write_bytes(b"")


def _of_another_run(path: Path, other: Path) -> None:
    shutil.copy(other, path)


def _directory(path: Path, other: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path, other: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


def _missing(path: Path, other: Path) -> None:
    path.unlink()


DAMAGES: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    f"{name}{damage.__name__}": (name, damage)
    for name in (rundir.OUTCOME, rundir.INTENT, rundir.LOCK)
    for damage in (_cut, _garbage, _empty, _of_another_run, _directory, _fifo, _link, _missing)
    if (name, damage) != (rundir.LOCK, _directory)
}
"""Everything that can be wrong with each file. (A directory in place of the lock: below.)"""


def test_damaged_files_of_runs_that_ended_unseen(instance: Instance) -> None:
    """The outcome counts if it is sound, whatever became of the files beside it; otherwise the run is interrupted."""
    instance.environ["CRONWARD_CAPACITY_RUNS"] = "64"
    instance.start()
    runs = {
        label: instance.run_now(instance.add_command_job(instance.sidelog.command(label, 2000)))
        for label in (*DAMAGES, "other")
    }
    wait_until(lambda: all(instance.sidelog.count(f"{label}:start") for label in runs), "all have started")
    instance.scheduler.kill()
    instance.launcher.kill()
    directories = {label: instance.paths.run_directory(run_id) for label, run_id in runs.items()}
    wait_until(lambda: all((path / rundir.OUTCOME).exists() for path in directories.values()), "all have ended")
    power_cut(instance)
    for label, (name, damage) in DAMAGES.items():
        damage(directories[label] / name, directories["other"] / name)
    instance.start()
    instance.wait_idle()
    found = {label: instance.run_view(run_id) for label, run_id in runs.items()}
    expected = {label: "interrupted" if label.startswith(rundir.OUTCOME) else None for label in runs}
    assert {label: run.reason for label, run in found.items()} == expected
    for label, run in found.items():
        if run.reason == "interrupted":
            assert rundir.OUTCOME in str(run.error), (label, run.error)
    assert instance.launcher.alive
    assert all(instance.sidelog.count(f"{label}:start") == 1 for label in runs)


def test_a_lock_that_cannot_be_opened_settles_nothing_until_it_can(instance: Instance) -> None:
    """What is in its place may hide a run that lives: it is asked again, and said."""
    instance.start()
    run_id = started(instance, "job", 60_000)
    directory = instance.paths.run_directory(run_id)
    lock = directory / rundir.LOCK
    instance.launcher.kill()
    lock.rename(directory / "aside")
    lock.mkdir()
    instance.start_launcher()
    instance.wait_reconciled()
    instance.wait_event("run.unreadable", count=2)
    assert instance.run_view(run_id).state == "active"
    lock.rmdir()
    (directory / "aside").rename(lock)
    os.kill(executor_of(directory), signal.SIGKILL)
    run = instance.wait_for_run(run_id)
    assert (run.state, run.reason) == ("error", "interrupted")


# directories that nobody asked for


def test_directories_of_runs_that_the_ledger_does_not_know(instance: Instance) -> None:
    """As after the restore of an older backup: what runs goes on to its end, nothing is invented, nothing deleted."""
    instance.start()
    run_id = started(instance, "job", 3000)
    directory = instance.paths.run_directory(run_id)
    instance.launcher.kill()
    instance.scheduler.kill()
    for file in instance.paths.state.glob("cronward.db*"):
        file.unlink()
    runs = instance.paths.runs
    (runs / "not-ours").write_text("keep")
    (runs / "empty").mkdir()
    for leftover in (f"{rundir.NEW_PREFIX}{'0' * 32}", f"{rundir.FORGET_PREFIX}{'1' * 32}"):
        (runs / leftover).mkdir()
        (runs / leftover / rundir.INTENT).write_bytes(b"half")
    instance.start()
    found = instance.wait_event("run.found")
    assert [line["run"] for line in found] == [run_id]
    wait_until(lambda: (directory / rundir.OUTCOME).exists(), "it ended well")
    instance.wait_event("run.unknown_result")
    wait_until(lambda: not list(runs.glob(".*")), "what was half made or half deleted is gone")
    assert [entry.label for entry in instance.sidelog.entries()] == ["job:start", "job:end"]
    assert instance.runs(live=True) == []
    assert (runs / "not-ours").read_text() == "keep"
    assert directory.exists()
    assert instance.status().launcher.state == "ready"


# numbers that mean somebody else


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process that has nothing to do with us, leader of its own session."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process.pid
        assert process.poll() is None, "it was ended"
        process.kill()


def test_a_pid_that_is_another_process_now(instance: Instance, stranger: int) -> None:
    """B235: the executor is dead and its number is in use again. Nobody is signalled, and the record says what is
    known."""
    instance.start()
    run_id = started(instance, "job", 60_000)
    directory = instance.paths.run_directory(run_id)
    power_cut(instance)
    intent = rundir.decode_intent((directory / rundir.INTENT).read_bytes())
    reused = identity.ProcessIdentity(stranger, intent.executor.start_ticks, intent.executor.boot_id)
    sealed = rundir.encode_intent(msgspec.structs.replace(intent, executor=reused))
    (directory / rundir.INTENT).write_bytes(sealed)
    instance.start_scheduler()
    answer = instance.client().call("run.cancel", CancelAnswer, {"runId": run_id, "why": "B235"})
    assert answer.run_id == run_id
    instance.start_launcher()
    run = instance.wait_for_run(run_id)
    assert (run.state, run.reason) == ("error", "interrupted")
    assert "no outcome was saved" in str(run.error)
    assert state(stranger) == "S"


# another boot


def test_after_another_boot_runs_are_restored_or_interrupted_and_never_lost(instance: Instance, tmp_path: Path) -> None:
    """What was saved counts. What was not is interrupted, even a launch without any trace: its directory may have been
    lost with unsynced data."""
    instance.start()
    done = started(instance, "done", 1200)
    cut = started(instance, "cut", 60_000)
    instance.scheduler.kill()
    saved = instance.paths.run_directory(done) / rundir.OUTCOME
    wait_until(saved.exists, "one outcome is saved, and nobody heard of it")
    sent = _active_without_a_trace(instance)
    power_cut(instance)
    with OtherBoot(tmp_path / "boot_id") as boot:
        instance.prefix = boot.prefix()
        instance.start()
        instance.wait_idle()
        found = {run_id: instance.run_view(run_id) for run_id in (done, cut, sent)}
        states = {run_id: (run.state, run.reason) for run_id, run in found.items()}
        assert states == {done: ("ok", None), cut: ("error", "interrupted"), sent: ("error", "interrupted")}
        assert "restarted" in str(found[sent].error)
        assert instance.sidelog.count("sent:start") == 0
        notices = instance.status().notices
        assert {run for notice in notices for run in notice.runs} == {cut, sent}
        instance.stop()


def _active_without_a_trace(instance: Instance) -> str:
    """A run that a scheduler made active just before it was killed."""
    instance.start_scheduler(arm={"scheduler.after_active_commit": "crash"})
    client = instance.client()
    job = client.call("cron.add", JobView, instance.job(instance.sidelog.command("sent", 10)))
    client.send("cron.run", {"id": job.id})
    failpoints.wait_hit(instance.hits, "scheduler.after_active_commit")
    instance.scheduler.process.wait(10)
    return client_run(instance, job)


def client_run(instance: Instance, job: JobView) -> str:
    """The id of the job's run, asked of a scheduler that no launcher tells what became of it."""
    if instance.launcher.alive:
        instance.launcher.kill()
    instance.start_scheduler()
    (run,) = instance.runs(job, live=True)
    assert run.state == "active"
    return run.run_id


# a clock that jumps


def test_a_clock_that_is_set_back_while_a_run_lasts(instance: Instance) -> None:
    """Durations are measured, not subtracted; no slot fires a second time; nothing is settled by it."""
    clock = ShiftedClock(instance.root / "shift")
    instance.environ |= clock.environ()
    instance.start()
    ticking = instance.add_command_job(instance.sidelog.command("tick"), {"kind": "every", "everyMs": 300})
    wait_until(lambda: instance.sidelog.count("tick") >= 2, "slots fire")
    run_id = started(instance, "job", 1500)
    clock.set(-3600)
    run = instance.wait_for_run(run_id)
    assert run.state == "ok"
    assert run.duration_ms is not None
    assert 1400 <= run.duration_ms < 60_000
    instance.wait_idle()
    before = instance.sidelog.count("tick")
    assert instance.client().call("cron.get", JobView, {"id": ticking.id}).enabled
    clock.set(0)
    wait_until(lambda: instance.sidelog.count("tick") > before, "they go on when the clock is right again")
    ids = [entry.run for entry in instance.sidelog.entries("tick")]
    assert len(ids) == len(set(ids))
    assert {run.state for run in instance.runs(ticking)} == {"ok"}


def test_a_clock_that_is_set_back_between_two_lives(instance: Instance) -> None:
    clock = ShiftedClock(instance.root / "shift")
    instance.environ |= clock.environ()
    instance.start()
    run_id = started(instance, "job", 60_000)
    power_cut(instance)
    clock.set(-7200)
    instance.start()
    run = instance.wait_for_run(run_id)
    assert (run.state, run.reason) == ("error", "interrupted")
    assert run.ended_at_ms is not None
    assert instance.sidelog.count("job:start") == 1
