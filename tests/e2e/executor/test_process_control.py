"""Deadlines, cancellation, and the end of everything that a task has started."""

import os
import shutil
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from cronward.protocol import pair
from cronward.protocol.outcome import Outcome, Reason, Status
from tests.support.executor_rig import NO_LIMITS, Executor, Rig, alive, now_ms

QUICK = msgspec.structs.replace(NO_LIMITS, timeout_ms=500, grace_ms=300)

DOUBLE_FORK = "(setsid sh -c 'nohup sleep 300 >/dev/null 2>&1 &' &)"


@pytest.mark.parametrize(
    "script",
    [
        "setsid sleep 300 & sleep 300",
        DOUBLE_FORK + "; sleep 300",
        "setsid setsid sleep 300 & " * 5 + "sleep 300",
        "kill -STOP $$",
        "sleep 300 | sleep 300",
    ],
)
def test_a_timed_out_task_leaves_nothing(rig: Rig, executor: Executor, script: str) -> None:
    """B130: children in sessions of their own, and double forks, are ended with the task."""
    result = rig.shell(executor, script, limits=QUICK)
    assert (result.status, result.reason) == (Status.ERROR, Reason.TIMED_OUT)
    assert result.message == "the command was ended: it ran longer than 0.5 s"
    assert 500 <= result.duration_ms < 3000
    assert (result.left, result.unended) == (0, False)
    assert executor.descendants() == []
    assert rig.processes(result.run) == []


def test_a_middle_process_that_ignores_term_is_killed_with_its_children(rig: Rig, executor: Executor) -> None:
    """B131: after the grace the whole tree is killed."""
    script = 'sh -c \'trap "" TERM; sh -c "sleep 300" & while :; do wait; done\''
    begun = now_ms()
    result = rig.shell(executor, script, limits=QUICK)
    assert result.reason is Reason.TIMED_OUT
    assert now_ms() - begun >= 800, "the grace was given"
    assert executor.descendants() == []


def test_the_outcome_comes_only_after_the_task_is_proven_dead(rig: Rig, executor: Executor) -> None:
    # The task takes longer than its grace to end; a retry must never meet it.
    limits = msgspec.structs.replace(QUICK, grace_ms=3000)
    result = rig.shell(executor, "trap 'sleep 1; echo bye; exit 7' TERM; while :; do sleep 0.05; done", limits=limits)
    assert (result.reason, result.exit_code, result.stdout.head) == (Reason.TIMED_OUT, 7, b"bye\n")
    assert 1500 <= result.duration_ms < 3000, "the task used its grace and no more"
    assert executor.descendants() == []


def test_signals_of_a_task_to_its_session_spare_the_neighbours(rig: Rig, executor: Executor) -> None:
    neighbour = rig.start()
    run_id = rig.begin(neighbour, "sh", "-c", "sleep 1; echo survived")
    result = rig.shell(executor, "kill -KILL 0; sleep 300")
    assert (result.reason, result.signal) == (Reason.SIGNAL, signal.SIGKILL)
    assert result.message == "the command was ended by SIGKILL"
    survived, _ = rig.finish(neighbour, run_id)
    assert survived.stdout.head == b"survived\n"


def test_cancel_ends_a_grandchild_that_keeps_the_pipe(rig: Rig, executor: Executor) -> None:
    script = "(while :; do echo tick; sleep 0.1; done) & sleep 0.3"
    run_id = rig.begin(executor, "sh", "-c", script, limits=msgspec.structs.replace(NO_LIMITS, grace_ms=500))
    rig.wait_for("the first tick", (rig.directory(run_id) / "stdout").exists)
    executor.pair.send(pair.encode(pair.CancelRun(run_id, "operator")))
    begun = now_ms()
    result, free = rig.finish(executor, run_id)
    assert now_ms() - begun < 2500
    assert result.stdout.head.startswith(b"tick\n")
    assert executor.descendants() == []
    assert free.fit


def test_a_background_child_does_not_hold_the_run_open(rig: Rig, executor: Executor) -> None:
    """B152: the run is over when its leader is; the child is ended."""
    begun = now_ms()
    result = rig.shell(executor, "echo hi; sleep 300 &")
    assert (result.status, result.stdout.head) == (Status.OK, b"hi\n")
    assert now_ms() - begun < 3000
    assert result.duration_ms < 900, "draining is not the task's time"
    assert executor.descendants() == []


def test_children_left_on_purpose_live_on_and_retire_the_executor(rig: Rig, executor: Executor, tmp_path: Path) -> None:
    script = f"setsid sleep 300 >/dev/null 2>&1 & echo $! > {tmp_path}/pid"
    run_id = rig.begin(executor, "sh", "-c", script, leave_children=True)
    result, free = rig.finish(executor, run_id)
    pid = int((tmp_path / "pid").read_text())
    assert (result.status, result.left, result.unended) == (Status.OK, 1, False)
    assert alive(pid)
    assert not free.fit
    os.kill(pid, signal.SIGKILL)


def test_children_are_not_left_when_the_task_is_ended_by_force(rig: Rig, executor: Executor) -> None:
    result = rig.shell(executor, "setsid sleep 300 & sleep 300", limits=QUICK, leave_children=True)
    assert (result.reason, result.left) == (Reason.TIMED_OUT, 0)
    assert executor.descendants() == []


def test_left_children_that_end_at_once_leave_a_fit_executor(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "true", leave_children=True)
    result, free = rig.finish(executor, run_id)
    assert (result.left, free.fit) == (0, True)


def test_silence_is_measured_from_the_last_output(rig: Rig, executor: Executor) -> None:
    limits = msgspec.structs.replace(NO_LIMITS, no_output_ms=600, grace_ms=300)
    result = rig.shell(executor, "for i in 1 2 3; do echo $i; sleep 0.3; done; sleep 300", limits=limits)
    assert result.reason is Reason.NO_OUTPUT
    assert result.message == "the command was ended: it wrote nothing for 0.6 s"
    assert result.stdout.head == b"1\n2\n3\n"
    assert 1200 <= result.duration_ms < 3000


def test_a_task_that_ends_while_it_is_silent_is_no_timeout(rig: Rig, executor: Executor) -> None:
    limits = msgspec.structs.replace(NO_LIMITS, no_output_ms=5000, timeout_ms=5000)
    assert rig.shell(executor, "sleep 0.2; exec true", limits=limits).status is Status.OK


def test_adopted_zombies_are_reaped_during_the_run(rig: Rig, executor: Executor) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do (sh -c 'exit 0' &); done; sleep 300"
    run_id = rig.begin(executor, "sh", "-c", script)
    rig.wait_for("hello", lambda: rig.scheduler.hellos)
    rig.wait_for("the shell and its sleep alone", lambda: len(executor.descendants()) == 2)
    executor.pair.send(pair.encode(pair.CancelRun(run_id, "")))
    rig.finish(executor, run_id)


def test_a_forking_task_is_ended(rig: Rig, executor: Executor) -> None:
    # Each process replaces itself by a child and goes: no list of pids stays true for long.
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "end = time.monotonic() + 20\n"
        "while time.monotonic() < end:\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
        "    time.sleep(0.002)\n"
    )
    begun = now_ms()
    result = rig.run(executor, sys.executable, "-S", "-c", script, limits=QUICK)
    assert result.status is Status.OK, "the leader itself exited at once"
    assert now_ms() - begun < 10_000
    assert not result.unended
    assert executor.descendants() == []


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_what_does_not_end_is_counted_and_retires_the_executor(rig: Rig) -> None:
    # An executor that lost the right to signal other users' processes.
    executor = rig.start(wrapper=["setpriv", "--bounding-set=-kill", "--inh-caps=-kill"])
    limits = msgspec.structs.replace(QUICK, timeout_ms=1500, cleanup_ms=500)
    run_id = rig.begin(executor, "sleep", "30", user="nobody", limits=limits)
    result, free = rig.finish(executor, run_id)
    assert (result.reason, result.left, result.unended) == (Reason.TIMED_OUT, 1, True)
    assert not free.fit
    assert rig.lock_byte(run_id) == b"1"


def test_a_traced_task_that_stops_has_not_ended(rig: Rig, executor: Executor) -> None:
    """A process that asks its parent to trace it has its stops told like ends."""
    stop = "import ctypes, os, signal; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGSTOP)"
    run_id = rig.begin(executor, sys.executable, "-I", "-S", "-c", stop, limits=QUICK)
    result, _ = rig.finish(executor, run_id)
    assert (result.reason, result.signal) == (Reason.TIMED_OUT, signal.SIGKILL)
    assert executor.descendants() == []


def test_exit_codes_and_signals_are_told_apart(rig: Rig, executor: Executor) -> None:
    assert facts(rig.shell(executor, "exit 0")) == (Status.OK, None, 0, None)
    assert facts(rig.shell(executor, "exit 255")) == (Status.ERROR, Reason.EXIT_CODE, 255, None)
    assert facts(rig.shell(executor, "kill -SEGV $$")) == (Status.ERROR, Reason.SIGNAL, None, signal.SIGSEGV)


def facts(result: Outcome) -> tuple[Status, Reason | None, int | None, int | None]:
    return result.status, result.reason, result.exit_code, result.signal
