"""Launch, hand-over, reports, cancel, forget."""

import fcntl
import os
import signal

import pytest

from cronward.protocol import launch, rundir
from cronward.protocol.launch import GatewayState, Gone, LauncherConfig, RefuseReason
from cronward.protocol.rundir import Limits
from tests.e2e.launcher.rig import CONFIG, LIMITS, Rig, kill, read_outcome
from tests.support import processes
from tests.support.waiting import wait_until


def test_a_run_is_published_complete_and_handed_over(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    pid = rig.started("run", leave_children=True)
    directory = rig.directory("run")
    intent = rundir.decode_intent((directory / rundir.INTENT).read_bytes())
    assert (intent.run, intent.kind, intent.limits, intent.leave_children) == ("run", "slot", LIMITS, True)
    assert intent.executor.pid == pid
    assert intent.deadline_mono_ms is not None
    assert (directory / rundir.LOCK).read_bytes() == rundir.TASK_MAY_RUN
    assert directory.stat().st_mode & 0o777 == 0o700
    with (directory / rundir.LOCK).open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not list(rig.scratch.paths.runs.glob(".new-*"))


def test_the_launcher_keeps_no_copy_of_the_lock(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    rig.started("run")
    links = [os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{daemon.pid}/fd")]
    assert not [link for link in links if str(rig.scratch.paths.runs) in link]


def test_a_run_without_timeout_has_no_deadline(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.started("run", limits=Limits(0, 0, 1000, 500, 500, 1000))
    intent = rundir.decode_intent((rig.directory("run") / rundir.INTENT).read_bytes())
    assert intent.deadline_mono_ms is None


def test_an_acknowledged_run_is_not_reported_and_its_executor_is_used_again(rig: Rig) -> None:
    rig.config = LauncherConfig(version=1, ready=1, executors_max=1, grace_ms=500)
    rig.start({"CRONWARD_EXECUTORS_READY": "1", "CRONWARD_EXECUTORS_MAX": "1"})
    rig.reconciled()
    pids = {rig.started(f"run-{number}", "ok") for number in range(5)}
    assert len(pids) == 1
    rig.wait_heartbeat()
    assert not [message for message in rig.inbox if isinstance(message, launch.Exited)]


def test_an_unacknowledged_outcome_is_reported_until_acknowledged(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.started("run", "unacknowledged")
    exited = rig.expect(launch.Exited, "run")
    assert exited.how is Gone.REPORTED
    assert read_outcome(exited.outcome).run == "run"
    assert rig.expect(launch.Exited, "run") == exited
    rig.send(launch.Ack("run"))
    rig.forget(launch.Exited)
    rig.wait_heartbeat()
    assert not [message for message in rig.inbox if isinstance(message, launch.Exited)]


def test_a_run_given_up_without_outcome_is_interrupted(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.started("run", "no_outcome")
    exited = rig.expect(launch.Exited, "run")
    assert (exited.how, exited.outcome, exited.left) == (Gone.INTERRUPTED, None, 0)
    assert "no outcome was saved" in exited.detail


def test_a_run_whose_executor_dies_is_interrupted_and_its_tree_is_ended(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    pid = rig.started("run", child=True)
    child = rig.child_of("run")
    kill(pid)
    exited = rig.expect(launch.Exited, "run")
    assert exited.how is Gone.INTERRUPTED
    assert f"executor {pid} was killed by signal 9" in exited.detail
    assert processes.state(child) == "", "the tree is ended before it is reported"


def test_leave_children_lets_the_tree_live(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    pid = rig.started("run", child=True, leave_children=True)
    child = rig.child_of("run")
    kill(pid)
    rig.expect(launch.Exited, "run")
    assert processes.state(child) not in ("", "Z")


def test_an_executor_that_dies_with_the_run_in_its_socket_interrupts_it(rig: Rig) -> None:
    rig.config = LauncherConfig(version=1, ready=1, executors_max=1, grace_ms=500)
    rig.start({"CRONWARD_EXECUTORS_READY": "1", "CRONWARD_EXECUTORS_MAX": "1"})
    rig.reconciled()
    pid = rig.started("first", "ok")
    while rig.wait_heartbeat().pool.ready != 1:
        pass
    kill(pid, signal.SIGSTOP)
    wait_until(lambda: processes.state(pid) == "T", "the executor is stopped")
    assert rig.started("second", "ok") == pid
    kill(pid)
    assert rig.expect(launch.Exited, "second").how is Gone.INTERRUPTED
    assert rig.started("third", "ok") != pid


def test_a_dead_executor_never_gets_a_run(rig: Rig) -> None:
    """Two ready executors die while the launcher looks away; the launch that came meanwhile goes to another one."""
    daemon = rig.start()
    rig.reconciled()
    first, second = rig.started("a", "hang"), rig.started("b", "hang")
    while rig.wait_heartbeat().pool.ready < 2:
        pass
    children = [pid for pid in rig.scratch.processes() if pid not in (daemon.pid, first, second)]
    daemon.pause()
    for pid in children:
        kill(pid)
    wait_until(lambda: all(processes.state(pid) == "Z" for pid in children), "both are dead and nobody knows")
    rig.order("run")
    daemon.resume()
    accepted = rig.expect(launch.Accepted, "run")
    assert accepted.executor_pid not in children
    intent = rundir.decode_intent((rig.directory("run") / rundir.INTENT).read_bytes())
    assert intent.executor.pid == accepted.executor_pid


def test_a_second_launch_gets_what_is_known_of_the_first(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    pid = rig.started("held")
    rig.order("held")
    assert rig.expect(launch.Accepted, "held").executor_pid == pid
    rig.started("over", "unacknowledged")
    rig.expect(launch.Exited, "over")
    rig.send(launch.Ack("over"))
    rig.forget(launch.Exited)
    rig.order("over")
    assert rig.expect(launch.Exited, "over").how is Gone.REPORTED
    assert not [message for message in rig.inbox if isinstance(message, launch.Accepted)]


def test_three_hundred_launches_at_once_are_all_answered(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    runs = [f"run-{number}" for number in range(300)]
    for run in runs:
        rig.order(run)
    for run in runs:
        rig.expect(launch.Accepted, run)
    assert {path.name for path in rig.scratch.paths.runs.iterdir()} == {rig.directory(run).name for run in runs}


def test_a_waiting_launch_can_be_cancelled_and_a_held_run_is_told(rig: Rig) -> None:
    rig.config = LauncherConfig(version=1, ready=1, executors_max=1, grace_ms=500)
    rig.start({"CRONWARD_EXECUTORS_READY": "1", "CRONWARD_EXECUTORS_MAX": "1"})
    rig.reconciled()
    pid = rig.started("held")
    rig.order("waiting")
    rig.send(launch.Cancel("waiting", "not needed"))
    refused = rig.expect(launch.Refused, "waiting")
    assert (refused.reason, refused.detail) == (RefuseReason.CANCELLED, "not needed")
    for _ in range(3):
        rig.send(launch.Cancel("held", "because"))
    assert rig.started("next", "ok") == pid
    rig.send(launch.Cancel("unheard", "because"))
    rig.order("waiting")
    assert rig.expect(launch.Refused, "waiting") == refused


def test_a_launch_without_executor_is_refused_after_ten_seconds(rig: Rig) -> None:
    rig.config = LauncherConfig(version=1, ready=1, executors_max=1, grace_ms=500)
    rig.start({"CRONWARD_EXECUTORS_READY": "1", "CRONWARD_EXECUTORS_MAX": "1"})
    rig.reconciled()
    rig.started("held")
    rig.order("late")
    refused = rig.expect(launch.Refused, "late", deadline_s=15)
    assert refused.reason is RefuseReason.SPAWN_FAILED
    assert not rig.directory("late").exists()


def test_a_run_that_needs_a_gateway_is_refused_without_one(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.order("run", needs_gateway=True)
    assert rig.expect(launch.Refused, "run").reason is RefuseReason.GATEWAY_UNAVAILABLE
    assert rig.wait_heartbeat().gateway is GatewayState.NONE


def test_forget_deletes_what_is_over_and_never_a_live_run(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.started("over", "ok")
    rig.started("live")
    rig.order("ready-again")
    rig.expect(launch.Accepted, "ready-again")
    many = rig.directory("over") / "files"
    many.mkdir()
    for number in range(200):
        (many / str(number)).touch()
    os.symlink("/etc", many / "link")

    def forgotten() -> bool:
        rig.send(launch.Forget(["over", "live", "absent"]))
        return rig.expect(launch.Forgotten).runs == ["over", "absent"]

    wait_until(forgotten, "everything but the live run is forgotten")
    assert rig.directory("live").exists()
    assert not rig.directory("over").exists()
    wait_until(lambda: not list(rig.scratch.paths.runs.glob(".forget-*")), "the directory is deleted")
    assert os.path.exists("/etc/passwd")


def test_an_executor_that_is_unfit_or_too_big_is_replaced(rig: Rig) -> None:
    rig.config = CONFIG
    rig.start()
    rig.reconciled()
    pids = [rig.started("unfit", "ok", unfit=True), rig.started("big", "ok", rss_kib=300_000)]
    wait_until(lambda: not set(pids) & set(rig.scratch.processes()), "both have ended")
    while rig.wait_heartbeat().pool.ready != 2:
        pass


def test_executors_that_cannot_start_are_said_and_launches_refused(rig: Rig) -> None:
    rig.start({"FAKE_EXECUTOR": "broken"})
    rig.reconciled()
    rig.order("run")
    while rig.wait_heartbeat().cannot_start is None:
        pass
    assert "exited with status 3 before it was ready" in str(rig.heartbeats[-1].cannot_start)
    refused = rig.expect(launch.Refused, "run", deadline_s=15)
    assert refused.reason is RefuseReason.SPAWN_FAILED
    assert "exited with status 3" in refused.detail
