"""A launcher that finds runs of an earlier one."""

import os
import signal

import msgspec
import pytest

from cronward.protocol import identity, launch, rundir
from cronward.protocol.launch import Gone, RunState
from cronward.protocol.rundir import Limits
from tests.e2e.launcher.rig import Rig, kill, read_outcome, write_outcome
from tests.support import failpoints, processes
from tests.support.waiting import wait_until

WINDOWS = {
    "launcher.after_receive": RunState.ABSENT,
    "launcher.after_publish": RunState.SETTLING,
    "launcher.after_hand_over": RunState.HELD,
}


@pytest.mark.parametrize("point", WINDOWS)
def test_a_launcher_killed_on_the_way_neither_loses_nor_repeats(rig: Rig, point: str) -> None:
    daemon = rig.start(arm={point: "crash"})
    rig.reconciled()
    rig.order("run", "hang")
    failpoints.wait_hit(rig.scratch.hits, point)
    daemon.process.wait(10)
    rig.start()
    assert rig.reconciled(["run"]).runs == {"run": WINDOWS[point]}
    if point == "launcher.after_publish":
        assert rig.expect(launch.Exited, "run").how is Gone.INTERRUPTED
    if point == "launcher.after_hand_over":
        assert rig.wait_heartbeat().pool.adopted == 1


def test_a_killed_launcher_reports_again(rig: Rig) -> None:
    daemon = rig.start(arm={"launcher.before_exited": "crash"})
    rig.reconciled()
    rig.order("run", "unacknowledged")
    failpoints.wait_hit(rig.scratch.hits, "launcher.before_exited")
    daemon.process.wait(10)
    rig.start()
    assert rig.reconciled(["run"]).runs == {"run": RunState.OVER}
    assert rig.expect(launch.Exited, "run").how is Gone.REPORTED


@pytest.mark.parametrize("point", ["launcher.after_receive", "launcher.after_publish", "launcher.after_hand_over"])
def test_a_launch_is_answered_even_if_a_step_fails(rig: Rig, point: str) -> None:
    rig.start(arm={point: "error"})
    rig.reconciled()
    rig.order("run", "hang")
    if point == "launcher.after_publish":
        assert "failpoint" in rig.expect(launch.Refused, "run").detail
        assert not rig.directory("run").exists()
    else:
        rig.expect(launch.Accepted, "run")


def killed_while_holding(rig: Rig, run: str = "run", **fields: object) -> int:
    daemon = rig.start()
    rig.reconciled()
    pid = rig.started(run, "hang", **fields)
    daemon.kill()
    return pid


def test_an_adopted_run_that_dies_is_interrupted_and_its_tree_ended(rig: Rig) -> None:
    pid = killed_while_holding(rig, child=True)
    child = rig.child_of("run")
    rig.start()
    assert rig.reconciled(["run"]).runs == {"run": RunState.HELD}
    kill(pid)
    exited = rig.expect(launch.Exited, "run")
    assert exited.how is Gone.INTERRUPTED
    assert f"executor {pid} ended" in exited.detail
    assert processes.state(child) in ("", "Z")


def test_an_adopted_run_that_ends_well_is_reported(rig: Rig) -> None:
    pid = killed_while_holding(rig)
    rig.start()
    rig.reconciled(["run"])
    kill(pid, signal.SIGTERM)
    exited = rig.expect(launch.Exited, "run")
    assert exited.how is Gone.REPORTED
    assert read_outcome(exited.outcome).run == "run"


def test_what_ended_while_no_launcher_was_there_is_judged_by_name(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    pids = {run: rig.started(run, "hang", child=run == "dead") for run in ("dead", "done", "torn")}
    child = rig.child_of("dead")
    daemon.kill()
    for run in ("done", "torn"):
        write_outcome(rig.directory(run), run)
    torn = rig.directory("torn") / rundir.OUTCOME
    torn.write_bytes(torn.read_bytes()[:-3])
    for pid in pids.values():
        kill(pid)
    rig.start()
    assert rig.reconciled([*pids, "never"]).runs == {
        "dead": RunState.SETTLING,
        "done": RunState.OVER,
        "torn": RunState.SETTLING,
        "never": RunState.ABSENT,
    }
    assert rig.expect(launch.Exited, "dead").how is Gone.INTERRUPTED
    assert processes.state(child) in ("", "Z")
    assert rig.expect(launch.Exited, "done").how is Gone.REPORTED
    assert "incomplete" in rig.expect(launch.Exited, "torn").detail


def test_a_run_with_a_damaged_intent_is_followed_by_its_lock(rig: Rig) -> None:
    pid = killed_while_holding(rig, child=True)
    rig.child_of("run")  # the executor has read its intent
    (rig.directory("run") / rundir.INTENT).write_bytes(b"garbage")
    rig.start()
    assert rig.reconciled(["run"]).runs == {"run": RunState.HELD}
    kill(pid)
    assert rig.expect(launch.Exited, "run").how is Gone.INTERRUPTED


def test_a_pid_that_means_somebody_else_gets_no_signal(rig: Rig) -> None:
    """The executor is dead, its number and its session number are in use again."""
    daemon = rig.start()
    rig.reconciled()
    pid = rig.started("run", "hang")
    daemon.kill()
    kill(pid)
    path = rig.directory("run") / rundir.INTENT
    intent = rundir.decode_intent(path.read_bytes())
    stranger = identity.ProcessIdentity(os.getpid(), 1, intent.executor.boot_id)
    path.write_bytes(rundir.encode_intent(msgspec.structs.replace(intent, executor=stranger)))
    rig.start()
    rig.reconciled(["run"])
    assert rig.expect(launch.Exited, "run").left == 0


def test_of_another_boot_nothing_is_searched(rig: Rig) -> None:
    pid = killed_while_holding(rig, child=True)
    child = rig.child_of("run")
    kill(pid)
    path = rig.directory("run") / rundir.INTENT
    intent = rundir.decode_intent(path.read_bytes())
    other_boot = identity.ProcessIdentity(pid, intent.executor.start_ticks, "another boot")
    path.write_bytes(rundir.encode_intent(msgspec.structs.replace(intent, executor=other_boot)))
    rig.start()
    rig.reconciled(["run"])
    assert rig.expect(launch.Exited, "run").how is Gone.INTERRUPTED
    assert processes.state(child) not in ("", "Z")


def test_the_walk_finds_what_nobody_asks_about(rig: Rig) -> None:
    pid = killed_while_holding(rig)
    runs = rig.scratch.paths.runs
    (runs / ".new-0123").mkdir()
    (runs / ".new-0123" / "lock").touch()
    (runs / ".forget-4567").mkdir()
    (runs / "a file").touch()
    rig.start()
    rig.reconciled([])
    while rig.wait_heartbeat().pool.adopted != 1:
        pass
    wait_until(lambda: not list(runs.glob(".*-*")), "leftovers are deleted")
    kill(pid)
    rig.expect(launch.Exited, "run")
    rig.send(launch.Ack("run"))


def test_an_executor_that_overruns_its_deadline_gets_sigterm(rig: Rig) -> None:
    """Its executor hangs: thirty seconds after its deadline, which is made to be over, it gets SIGTERM."""
    killed_while_holding(rig)
    path = rig.directory("run") / rundir.INTENT
    intent = rundir.decode_intent(path.read_bytes())
    path.write_bytes(rundir.encode_intent(msgspec.structs.replace(intent, deadline_mono_ms=-60_000)))
    daemon = rig.start()
    rig.reconciled(["run"])
    assert rig.expect(launch.Exited, "run").how is Gone.REPORTED
    assert daemon.events("run.overdue")


def test_a_saved_outcome_is_reported_though_the_lock_is_held(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    pid = rig.started("run", "over")
    daemon.kill()
    path = rig.directory("run") / rundir.INTENT
    intent = rundir.decode_intent(path.read_bytes())
    path.write_bytes(rundir.encode_intent(msgspec.structs.replace(intent, deadline_mono_ms=-60_000)))
    rig.start()
    assert rig.reconciled(["run"]).runs == {"run": RunState.HELD}
    assert rig.expect(launch.Exited, "run").how is Gone.REPORTED
    assert processes.state(pid) not in ("", "Z")
    rig.send(launch.Forget(["run"]))
    assert rig.expect(launch.Forgotten).runs == []


def test_an_unsaved_outcome_protects_its_executor(rig: Rig) -> None:
    pid = killed_while_holding(rig, limits=Limits(1, 0, 1, 1, 1, 1000))
    directory = rig.directory("run")
    (directory / rundir.LOCK).write_bytes(rundir.TASK_OVER)
    intent = rundir.decode_intent((directory / rundir.INTENT).read_bytes())
    overdue = msgspec.structs.replace(intent, deadline_mono_ms=-60_000)
    (directory / rundir.INTENT).write_bytes(rundir.encode_intent(overdue))
    rig.start()
    rig.reconciled(["run"])
    for _ in range(2):
        rig.wait_heartbeat()
    assert processes.state(pid) not in ("", "Z")
