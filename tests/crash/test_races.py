"""Races between two boundaries: what is on its way at one meets what just happened at another."""

import contextlib
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from cronward.protocol import ids, launch, outcome, run, rundir, sockets
from cronward.protocol.identity import own_identity, start_ticks
from cronward.protocol.launch import RunState
from cronward.protocol.version import VERSION
from cronward.protocol.views import CancelAnswer, JobView
from tests.support import failpoints
from tests.support.false_launcher import acting_as_launcher
from tests.support.instance import Instance
from tests.support.processes import Daemon, state
from tests.support.waiting import wait_until

LONG_MS = 2500


@pytest.fixture
def single(instance: Instance) -> Instance:
    """At most one executor of each launcher, four runs at a time: launches wait in the launcher's memory. Its second
    launch leaves a mark."""
    instance.environ |= {
        "CRONWARD_EXECUTORS_READY": "1",
        "CRONWARD_EXECUTORS_MAX": "1",
        "CRONWARD_CAPACITY_RUNS": "4",
    }
    instance.start_scheduler()
    instance.start_launcher(arm={"launcher.after_receive": "delay:1@2"})
    instance.wait_reconciled()
    return instance


def executors(instance: Instance) -> list[int]:
    """Pids of its executors: the processes with more threads than the zygote's one."""
    found = []
    for pid in instance.processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"cronward.executor" in arguments and len(os.listdir(f"/proc/{pid}/task")) > 1:
                found.append(pid)
    return found


def zygote(instance: Instance) -> int:
    """The oldest process of those with its command line that has no threads; the others are about to be executors."""
    single = [
        pid
        for pid in set(instance.processes()) - set(executors(instance))
        if b"cronward.executor.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return min(single, key=lambda pid: start_ticks(pid) or sys.maxsize)


def wait_executors(instance: Instance, count: int) -> list[int]:
    wait_until(lambda: len(executors(instance)) == count, f"{count} executors")
    return executors(instance)


def executor_of(instance: Instance, run_id: str) -> int:
    data = (instance.paths.run_directory(run_id) / rundir.INTENT).read_bytes()
    return rundir.decode_intent(data).executor.pid


def published(instance: Instance, run_id: str) -> bool:
    return instance.paths.run_directory(run_id).exists()


def start_run(instance: Instance, label: str, stay_ms: int | None = None) -> str:
    return instance.run_now(instance.add_command_job(instance.sidelog.command(label, stay_ms)))


def occupy(single: Instance) -> tuple[str, str]:
    """Two runs: one that keeps the only executor busy, and one whose launch waits in the launcher's memory."""
    first = start_run(single, "first", LONG_MS)
    wait_until(lambda: single.sidelog.count("first:start") == 1, "the first run has begun")
    waiting = start_run(single, "waiting")
    failpoints.wait_hit(single.hits, "launcher.after_receive")
    assert single.run_view(waiting).state == "active"
    assert not published(single, waiting)
    return first, waiting


def assert_ok(instance: Instance, run_id: str) -> None:
    view = instance.wait_for_run(run_id)
    assert (view.state, view.reason, view.error) == ("ok", None, None)


def assert_ran_once(instance: Instance, *labels: str) -> None:
    written = Counter(entry.label for entry in instance.sidelog.entries())
    assert {label: written[label] for label in labels} == dict.fromkeys(labels, 1)


# outcome against exit report


def test_an_exit_report_overtakes_the_outcome_that_was_sent(instance: Instance) -> None:
    """The executor dies with its outcome sent; the launcher reports the saved one; then the sent one arrives."""
    instance.start_scheduler()
    instance.start_launcher(arm={"executor.after_outcome_saved": "crash"})
    instance.wait_reconciled()
    run_id = start_run(instance, "once")
    view = instance.wait_for_run(run_id)
    assert (view.state, view.exit_code) == ("ok", 0)
    assert [line["event"] for daemon in instance.daemons for line in daemon.lines()].count("executor.died") == 1
    saved = (instance.paths.run_directory(run_id) / rundir.OUTCOME).read_bytes()
    with run_peer(instance) as peer:
        secret = ids.run_secret(instance.paths.secret_key.read_bytes(), run_id)
        peer.send(run.encode(run.Report(run_id, secret, rundir.unseal(saved, rundir.OUTCOME))))
        assert peer.poll(10_000)
        assert run.decode_to_executor(peer.recv()) == run.Recorded(run_id)
    assert instance.run_view(run_id) == view
    assert len(instance.runs()) == 1
    assert_ran_once(instance, "once")


def test_outcome_and_exit_report_arrive_in_one_batch(instance: Instance) -> None:
    """The scheduler is held up while the executor sends its outcome, dies, and the launcher reports it too."""
    instance.start_scheduler()
    instance.start_launcher(arm={"executor.after_outcome_sent": "crash"})
    instance.wait_reconciled()
    run_id = start_run(instance, "once", 1000)
    wait_until(lambda: instance.sidelog.count("once:start") == 1, "the task has begun")
    wait_until(lambda: instance.run_view(run_id).run_at_ms is not None, "its executor has greeted the scheduler")
    instance.scheduler.pause()
    failpoints.wait_hit(instance.hits, "executor.after_outcome_sent")
    wait_until(lambda: bool(instance.launcher.events("executor.died")), "the launcher noticed the death")
    instance.scheduler.resume()
    view = instance.wait_for_run(run_id)
    assert (view.state, view.late_outcome) == ("ok", None)
    assert not instance.events("notice.sent")
    assert_ran_once(instance, "once:start", "once:end")


@contextlib.contextmanager
def run_peer(instance: Instance) -> Iterator[zmq.Socket[bytes]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        peer = sockets.dealer(context, str(instance.paths.run), run.MESSAGE_MAX_BYTES)
        assert peer.poll(10_000, zmq.POLLOUT)
        yield peer
    finally:
        context.destroy(linger=0)


# launches that wait


def test_a_launch_in_a_dead_launchers_queue_is_lost_and_said_to_be(single: Instance) -> None:
    first, waiting = occupy(single)
    single.launcher.kill()
    single.start_launcher()
    view = single.wait_for_run(waiting)
    assert (view.state, view.reason) == ("error", "launch_lost")
    assert_ok(single, first)
    assert single.sidelog.count("waiting") == 0
    assert [line["runs"] for line in single.wait_event("notice.sent")] == [[waiting]]


def test_a_launch_of_a_dead_schedulers_epoch_still_starts(single: Instance) -> None:
    """It was received, so it is no longer the scheduler's to lose: the new one hears that it waits."""
    first, waiting = occupy(single)
    single.scheduler.kill()
    single.start_scheduler()
    assert single.wait_for_run(waiting).state == "ok"
    assert_ok(single, first)
    assert_ran_once(single, "waiting", "first:end")


# executors and zygotes that die


def test_an_executor_dies_with_a_run_just_handed_to_it(instance: Instance) -> None:
    """It never read it: the lock was in the socket, and is free once the socket is gone."""
    instance.start()
    stopped = wait_executors(instance, 2)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    run_id = start_run(instance, "never")
    wait_until(lambda: published(instance, run_id), "the run is handed over")
    assert executor_of(instance, run_id) in stopped
    for pid in stopped:
        instance.kill(pid)
    view = instance.wait_for_run(run_id)
    assert (view.state, view.reason) == ("error", "interrupted")
    assert instance.sidelog.entries() == []
    assert instance.wait_for_run(start_run(instance, "next")).state == "ok"


def test_a_zygote_dies_while_executors_are_needed(instance: Instance) -> None:
    instance.environ["CRONWARD_CAPACITY_RUNS"] = "16"
    instance.start()
    wait_executors(instance, 2)
    due_ms = instance.soon_ms(200)
    labels = [f"job{number}" for number in range(16)]
    for label in labels:
        instance.add_at(instance.sidelog.command(label, 100), due_ms, {"deleteAfterRun": False})
    before = zygote(instance)
    os.kill(before, signal.SIGSTOP)
    wait_until(lambda: instance.sidelog.entries() != [], "runs begin in the executors that were ready")
    instance.kill(before)
    instance.wait_idle()
    assert [view.state for view in instance.runs()] == ["ok"] * len(labels)
    assert_ran_once(instance, *(f"{label}:end" for label in labels))


def test_idle_executors_die(instance: Instance) -> None:
    instance.start()
    for pid in wait_executors(instance, 2):
        instance.kill(pid)
    assert instance.wait_for_run(start_run(instance, "job")).state == "ok"
    assert_ran_once(instance, "job")
    wait_until(lambda: len(executors(instance)) >= 2, "others have taken their place")


def test_an_executor_is_used_again_after_a_run_that_left_things_behind(single: Instance) -> None:
    script = 'sleep 60 & setsid sleep 60 & LEFT=1; export LEFT; umask 777; exec "$@"'
    argv = ["sh", "-c", script, "sh", *single.sidelog.command("first")]
    first = single.run_now(single.add_command_job(argv, payload={"cwd": str(single.root)}))
    assert single.wait_for_run(first).left == 0
    look = 'test -z "$LEFT" && test "$(pwd)" != "$0" && test "$(umask)" != 0777 && exec "$@"'
    argv = ["sh", "-c", look, str(single.root), *single.sidelog.command("second")]
    second = single.run_now(single.add_command_job(argv))
    assert single.wait_for_run(second).state == "ok"
    assert executor_of(single, first) == executor_of(single, second)
    assert [(entry.label, entry.run) for entry in single.sidelog.entries()] == [("first", first), ("second", second)]
    assert not [pid for pid in single.processes() if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_an_executor_that_was_allowed_to_leave_children_is_not_used_again(single: Instance) -> None:
    argv = ["sh", "-c", "sleep 60 >/dev/null 2>&1 &"]
    first = single.run_now(single.add_command_job(argv, payload={"leaveChildren": True}))
    assert single.wait_for_run(first).left == 1
    second = start_run(single, "second")
    assert single.wait_for_run(second).state == "ok"
    assert executor_of(single, first) != executor_of(single, second)
    assert [pid for pid in single.processes() if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()]


# more than one launcher, more than one word


def test_a_second_launcher_leaves_the_first_alone(instance: Instance) -> None:
    instance.start()
    first = instance.launcher
    run_id = instance.start_job(500)
    second = instance.start_launcher(wait_ready=False)
    assert second.process.wait(20) == 75
    assert "another launcher is running" in str(second.events("launcher.cannot_start")[0]["message"])
    assert first.alive
    assert_ok(instance, run_id)
    assert instance.status().launcher.pid == first.pid
    assert_ran_once(instance, "job:start", "job:end")


def test_a_register_that_comes_twice_or_late_costs_nothing(instance: Instance) -> None:
    """Each opens a new epoch. A message of the one before is of the past, and runs go on."""
    instance.start()
    epoch = instance.status().launcher.epoch
    run_id = instance.start_job(1000)
    with acting_as_launcher(instance) as launcher:
        for expected in (epoch + 1, epoch + 2):
            launcher.send(launch.encode(launch.Register(own_identity(), VERSION)))
            assert launcher.poll(10_000)
            welcome = launch.decode_to_launcher(launcher.recv())
            assert isinstance(welcome, launch.Welcome)
            assert (welcome.epoch, welcome.active) == (expected, [run_id])
        late = launch.Inventory(instance.status().instance, epoch + 1, {run_id: RunState.ABSENT})
        launcher.send(launch.encode(late))
        queued = start_run(instance, "meanwhile")
        while launcher.poll(300):
            assert not isinstance(launch.decode_to_launcher(launcher.recv()), launch.Launch), "not reconciled"
    wait_until(lambda: instance.status().launcher.epoch > epoch + 2, "the next launcher has registered")
    assert instance.wait_for_run(queued).state == "ok"
    assert_ok(instance, run_id)
    assert instance.status().launcher.pid == instance.launcher.pid
    assert_ran_once(instance, "job:start", "job:end", "meanwhile")


# cancel


def test_a_cancel_is_given_before_the_executor_has_read_its_run(instance: Instance) -> None:
    instance.start()
    stopped = wait_executors(instance, 2)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    run_id = start_run(instance, "job", 60_000)
    wait_until(lambda: published(instance, run_id), "the run is handed over")
    assert cancel(instance, run_id) == "requested"
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    view = instance.wait_for_run(run_id)
    assert (view.state, view.reason) == ("error", "cancelled")
    assert instance.sidelog.count("job:end") == 0


def test_a_cancel_outlives_the_restart_of_both_daemons(instance: Instance) -> None:
    """It is committed; the executor, which could not hear it, gets it from the new scheduler."""
    instance.start()
    run_id = instance.start_job(60_000)
    executor = executor_of(instance, run_id)
    os.kill(executor, signal.SIGSTOP)
    assert cancel(instance, run_id) == "requested"
    instance.scheduler.kill()
    instance.launcher.kill()
    instance.start_scheduler()
    instance.start_launcher()
    instance.wait_reconciled()
    assert instance.run_view(run_id).state == "active"
    os.kill(executor, signal.SIGCONT)
    view = instance.wait_for_run(run_id)
    assert (view.state, view.reason) == ("error", "cancelled")
    assert instance.sidelog.count("job:end") == 0


def test_a_launch_that_waits_is_cancelled(single: Instance) -> None:
    first, waiting = occupy(single)
    assert cancel(single, waiting) == "requested"
    assert single.wait_for_run(waiting).reason == "cancelled"
    assert_ok(single, first)
    assert single.sidelog.count("waiting") == 0


def cancel(instance: Instance, run_id: str) -> str:
    return instance.client().call("run.cancel", CancelAnswer, {"runId": run_id}).result


# ten minutes without a scheduler


@pytest.mark.parametrize("launcher_dies", [False, True], ids=["its launcher lives", "its launcher is dead, too"])
def test_an_executor_gives_an_unacknowledged_outcome_up(instance: Instance, launcher_dies: bool) -> None:
    """After ten minutes, here a second and a half; from then on the launcher reports it from the directory."""
    instance.start_scheduler()
    program = str(Path(__file__).with_name("short_hold_launcher.py"))
    launcher = Daemon([sys.executable, program], instance.environ, instance.root / "launcher.log")
    instance.daemons.append(launcher)
    launcher.wait_ready()
    instance.wait_reconciled()
    run_id = instance.start_job(500)
    executor = executor_of(instance, run_id)
    instance.scheduler.kill()
    if launcher_dies:
        launcher.kill()
    directory = instance.paths.run_directory(run_id)
    wait_until((directory / rundir.OUTCOME).exists, "the outcome is saved")
    assert holds_lock(executor, directory)
    wait_until(lambda: not holds_lock(executor, directory), "the executor gives up")
    instance.start_scheduler()
    if launcher_dies:
        instance.start_launcher()
    view = instance.wait_for_run(run_id)
    saved = outcome.decode(rundir.unseal((directory / rundir.OUTCOME).read_bytes(), rundir.OUTCOME))
    assert (view.state, view.run_at_ms) == ("ok", saved.started_ms)
    assert_ran_once(instance, "job:start", "job:end")


def holds_lock(pid: int, directory: Path) -> bool:
    if state(pid) in ("", "Z"):
        return False
    links = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return str(directory / rundir.LOCK) in links


# both daemons at once


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_both_daemons_are_restarted_at_once_under_load(instance: Instance, number: signal.Signals) -> None:
    instance.start()
    jobs = add_burst(instance, 40)
    wait_until(lambda: len(instance.sidelog.entries()) >= 20, "the burst is under way")
    daemons = (instance.scheduler, instance.launcher)
    for daemon in daemons:
        daemon.signal(number)
    for daemon in daemons:
        daemon.process.wait(20)
    together(lambda: instance.start_scheduler(), lambda: instance.start_launcher())
    instance.wait_reconciled()
    instance.wait_idle()
    views = {view.job_id: view for view in instance.runs()}
    assert views.keys() == {job.id for job in jobs}
    lost = [view.job_name for view in views.values() if view.state != "ok"]
    assert {view.reason for view in views.values()} <= {None, "launch_lost", "interrupted"}
    assert len(lost) <= (0 if number is signal.SIGTERM else 16)
    written = Counter(entry.label for entry in instance.sidelog.entries())
    assert set(written.values()) == {1}
    assert_ran_once(instance, *(f"{job.name}:end" for job in jobs if job.name not in lost))
    assert not any(f"{name}:start" in written for name in lost)


def add_burst(instance: Instance, count: int) -> list[JobView]:
    due_ms = instance.soon_ms(400)
    fields = {"deleteAfterRun": False}
    return [
        instance.add_at(instance.sidelog.command(f"job{number}", 20), due_ms, fields | {"name": f"job{number}"})
        for number in range(count)
    ]


def together(*calls: Callable[[], object]) -> None:
    """Each in a thread of its own, begun at the same time."""
    barrier = threading.Barrier(len(calls))

    def run_one(call: Callable[[], object]) -> None:
        barrier.wait()
        call()

    threads = [threading.Thread(target=run_one, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
