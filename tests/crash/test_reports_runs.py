"""Reports of users of other schedulers, replayed on real processes: process control, overlap and blocking. The number
in each docstring names the report.

One live run per job is the rule here (a slot that comes while the job runs is consumed and counted), so the reports
about overlap policies are judged by it.
"""

import itertools
import sys
import textwrap
import time

import pytest

from cronward.protocol.views import CancelAnswer, JobView, RunAnswer
from tests.support.instance import Instance
from tests.support.processes import state
from tests.support.waiting import wait_until


@pytest.fixture
def ready(instance: Instance) -> Instance:
    return instance.start()


def started(instance: Instance, label: str) -> int:
    return instance.sidelog.count(f"{label}:start")


def job_view(instance: Instance, job: JobView) -> JobView:
    return instance.client().call("cron.get", JobView, {"id": job.id})


def every(every_ms: int) -> dict[str, object]:
    return {"kind": "every", "everyMs": every_ms}


# process control


def test_a_retry_waits_until_the_first_try_is_dead(instance: Instance) -> None:
    """B133: a command that ignores TERM outlives its timeout for as long as the grace lasts, and no longer."""
    instance.environ["CRONWARD_COMMAND_GRACE_S"] = "1"
    instance.start()
    tries = instance.root / "tries"
    script = (
        "trap '' TERM; for pid in $(cat $0 2>/dev/null); do kill -0 $pid 2>/dev/null && echo overlap >> $0; done;"
        " echo $$ >> $0; while :; do sleep 0.05; done"
    )
    retry = {"maxRetries": 1, "delaysSeconds": [0.01], "jitter": 0, "transient": ["timeout"]}
    instance.add_command_job(
        ["/bin/sh", "-c", script, str(tries)],
        {"kind": "at", "at": str(instance.soon_ms(100))},
        {"timeoutSeconds": 1},
        {"retry": retry, "deleteAfterRun": False},
    )
    wait_until(lambda: len(instance.runs()) == 2, "both tries are over", 30, poll_s=0.1)
    assert [run.reason for run in instance.runs()] == ["timed_out", "timed_out"]
    pids = tries.read_text().split()
    assert len(pids) == 2
    assert "overlap" not in pids
    assert all(state(int(pid)) in ("", "Z") for pid in pids)


def test_work_that_ended_while_the_service_was_dead_blocks_nothing(ready: Instance) -> None:
    """B134: its row is closed within seconds, and the next slot runs."""
    job = ready.add_command_job(ready.sidelog.command("job", 800), every(1500))
    wait_until(lambda: started(ready, "job") == 1, "it runs")
    ready.scheduler.kill()
    ready.launcher.kill()
    wait_until(lambda: ready.sidelog.count("job:end") == 1, "it ends unseen")
    ready.start()
    wait_until(lambda: started(ready, "job") == 2, "the next slot runs")
    assert ready.runs(job)[0].state == "ok"


KILL_SESSION = """
    import os, signal, subprocess, sys
    within = subprocess.Popen(["sleep", "1000"])
    outside = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    with open(sys.argv[1], "w") as file:
        print(within.pid, outside.pid, file=file)
    own, session = os.getpid(), os.getsid(0)
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:
            if os.getsid(pid) == session and pid != own:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.kill(own, signal.SIGKILL)
"""
"""What `pkill -KILL -s 0` does, with one child in the session and one that has left it."""


def test_a_job_that_kills_its_own_session_hurts_no_neighbour(ready: Instance) -> None:
    """B136: each has a session, and a process group, of its own. A child that has left the session is ended, too."""
    neighbour = ready.run_now(ready.add_command_job(ready.sidelog.command("neighbour", 1500)))
    wait_until(lambda: started(ready, "neighbour") == 1, "the neighbour runs")
    file = ready.root / "children"
    argv = [sys.executable, "-I", "-S", "-c", textwrap.dedent(KILL_SESSION), str(file)]
    run = ready.wait_for_run(ready.run_now(ready.add_command_job(argv)))
    assert (run.state, run.reason, run.signal, run.left) == ("error", "signal", 9, 0)
    within, outside = (int(pid) for pid in file.read_text().split())
    assert [state(pid) for pid in (within, outside)] == ["", ""]
    assert ready.wait_for_run(neighbour).state == "ok"
    assert [entry.label for entry in ready.sidelog.entries()] == ["neighbour:start", "neighbour:end"]


def test_a_run_is_adopted_by_the_next_launcher(ready: Instance) -> None:
    """B137, B139: after a restart somebody owns it: it can be cancelled, and its end is known."""
    first = ready.run_now(ready.add_command_job(ready.sidelog.command("first", 2500)))
    second = ready.run_now(ready.add_command_job(ready.sidelog.command("second", 60_000)))
    wait_until(lambda: started(ready, "first") == started(ready, "second") == 1, "both run")
    ready.launcher.kill()
    ready.start_launcher()
    ready.wait_reconciled()
    assert not ready.run_view(second).unverified_since_ms
    ready.client().call("run.cancel", CancelAnswer, {"runId": second})
    cancelled = ready.wait_for_run(second)
    assert (cancelled.state, cancelled.reason) == ("error", "cancelled")
    assert ready.wait_for_run(first).state == "ok"
    assert started(ready, "first") == started(ready, "second") == 1


def test_a_cancel_ends_the_grandchild_that_holds_the_output(instance: Instance) -> None:
    """B140: the command itself is gone already; what it left prints on, and ignores TERM."""
    instance.environ["CRONWARD_COMMAND_GRACE_S"] = "1"
    instance.start()
    file = instance.root / "grandchild"
    script = "(trap '' TERM; while :; do echo tick; sleep 0.1; done) & echo $! > $0; sleep 0.5"
    run_id = instance.run_now(instance.add_command_job(["/bin/sh", "-c", script, str(file)]))
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), "the grandchild runs")
    pid = int(file.read_text())
    wait_until(lambda: b"sleep 0.5" not in _commands(instance), "the command is over")
    before = time.monotonic()
    instance.client().call("run.cancel", CancelAnswer, {"runId": run_id})
    instance.wait_for_run(run_id)
    assert time.monotonic() - before < 1 + 1 + 8, "grace, drain, and a busy machine"
    assert state(pid) in ("", "Z")


def _commands(instance: Instance) -> bytes:
    found = b""
    for pid in instance.processes():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found += file.read().replace(b"\0", b" ") + b"\n"
        except OSError:
            continue
    return found


# overlap and blocking


def test_long_jobs_hold_no_others(ready: Instance) -> None:
    """B115, B119: two long jobs run; a third that becomes due between starts at its slot."""
    for label in ("a", "b"):
        ready.add_at(ready.sidelog.command(label, 60_000), ready.soon_ms(50))
    wait_until(lambda: started(ready, "a") == started(ready, "b") == 1, "both run")
    due_ms = ready.soon_ms(500)
    ready.add_at(ready.sidelog.command("c"), due_ms)
    wait_until(lambda: ready.sidelog.count("c") == 1, "it runs, too")
    (entry,) = ready.sidelog.entries("c")
    assert 0 <= entry.ns / 1e6 - due_ms < 2000


def test_siblings_of_a_slow_one_are_finished_when_they_are(instance: Instance) -> None:
    """B116."""
    instance.environ["CRONWARD_CAPACITY_RUNS"] = "10"
    instance.start()
    due_ms = instance.soon_ms()
    slow = instance.add_at(instance.sidelog.command("slow", 60_000), due_ms, {"deleteAfterRun": False})
    quick = [
        instance.add_at(instance.sidelog.command(f"q{number}", 200), due_ms, {"deleteAfterRun": False})
        for number in range(9)
    ]
    wait_until(lambda: len(instance.runs()) == 9, "nine are finished")
    assert {run.job_id for run in instance.runs()} == {job.id for job in quick}
    assert {run.state for run in instance.runs()} == {"ok"}
    assert [run.state for run in instance.runs(slow, live=True)] == ["active"]


def test_an_edit_of_a_running_job_is_for_its_next_run(ready: Instance) -> None:
    """B118: the running copy is the old one, and nobody else is disturbed."""
    other = ready.run_now(ready.add_command_job(ready.sidelog.command("other", 1200)))
    job = ready.add_command_job(ready.sidelog.command("old", 1000))
    run_id = ready.run_now(job)
    wait_until(lambda: started(ready, "old") == 1, "it runs")
    patch = {"payload": {"argv": ready.sidelog.command("new")}}
    ready.client().call("cron.update", JobView, {"id": job.id, "patch": patch})
    assert ready.wait_for_run(run_id).state == "ok"
    assert ready.wait_for_run(ready.run_now(job)).state == "ok"
    assert ready.wait_for_run(other).state == "ok"
    assert {label: ready.sidelog.count(label) for label in ("old:end", "new", "other:end")} == {
        "old:end": 1,
        "new": 1,
        "other:end": 1,
    }


def test_slots_behind_a_run_that_hangs_are_counted(ready: Instance) -> None:
    """B124: they are consumed, which shows on the job, and the run that hangs is in the list."""
    job = ready.add_command_job(["/bin/sleep", "infinity"], every(300))
    wait_until(lambda: job_view(ready, job).state.consumed_slots >= 3, "three slots found it running")
    view = job_view(ready, job)
    assert view.status == "running"
    (run,) = ready.runs(job, live=True)
    assert view.state.live_run_id == run.run_id
    assert view.state.running_at_ms is not None
    again = ready.client().call("cron.run", RunAnswer, {"id": job.id})
    assert (again.enqueued, again.reason) == (False, "already-running")


def test_a_run_longer_than_its_interval_keeps_to_the_grid(ready: Instance) -> None:
    """B125: 1.2 s of work each second: the next run is at the first slot after the end, never beside the last one."""
    anchor_ms = ready.soon_ms(500)
    job = ready.add_command_job(
        ready.sidelog.command("job", 1200), {"kind": "every", "everyMs": 1000, "anchorMs": anchor_ms}
    )
    wait_until(lambda: ready.sidelog.count("job:end") >= 3, "three runs have ended", 60)
    ready.client().call("cron.update", JobView, {"id": job.id, "patch": {"enabled": False}})
    ready.wait_idle()
    labels = [entry.label for entry in ready.sidelog.entries()]
    assert labels == ["job:start", "job:end"] * (len(labels) // 2), "no two at once"
    slots = [run.slot_ms for run in ready.runs(job)]
    assert len(slots) == len(set(slots))
    assert all((slot - anchor_ms) % 1000 == 0 for slot in slots)
    assert all(later - earlier >= 2000 for earlier, later in itertools.pairwise(slots))
    assert job_view(ready, job).state.consumed_slots >= 2


def test_a_job_lives_on_after_a_timeout(ready: Instance) -> None:
    """B127: the next slot fires, and it can be run by hand."""
    retry = {"maxRetries": 0, "backoffSeconds": [0.1], "disableAfter": 0}
    job = ready.add_command_job(["/bin/sleep", "infinity"], every(1500), {"timeoutSeconds": 0.3}, {"retry": retry})
    wait_until(lambda: len(ready.runs(job)) >= 2, "two slots have timed out", 30)
    assert {run.reason for run in ready.runs(job)} == {"timed_out"}
    ready.client().call("cron.update", JobView, {"id": job.id, "patch": {"enabled": False}})
    ready.wait_idle()
    answer = ready.client().call("cron.run", RunAnswer, {"id": job.id})
    assert answer.run_id is not None
    assert ready.wait_for_run(answer.run_id).reason == "timed_out"


def test_a_run_with_much_output_is_final_soon_after_its_end(ready: Instance) -> None:
    """B128: the output is in its file already; nothing has to be moved for the record."""
    size = 64 * 1024 * 1024
    run_id = ready.run_now(ready.add_command_job(["/bin/sh", "-c", f"head -c {size} /dev/zero"]))
    run = ready.wait_for_run(run_id, deadline_s=60)
    assert run.state == "ok"
    assert run.stdout is not None
    assert (run.stdout.written, run.stdout.truncated) == (size, True)
    assert run.ended_at_ms is not None
    assert run.ts - run.ended_at_ms < 5000
