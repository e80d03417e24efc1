"""The executor between its launcher and the scheduler: what is said, in which order, and what a lost peer changes."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cronward.protocol import outcome, pair, run, rundir
from cronward.protocol.identity import start_ticks
from cronward.protocol.job import Command
from cronward.protocol.outcome import Reason, Status
from tests.support.executor_rig import DEADLINE_S, Executor, Rig, alive, now_ms


def test_ready_names_the_process(rig: Rig) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [sys.executable, "-m", "cronward.executor", str(theirs.fileno()), str(rig.scheduler.path)]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        ours.settimeout(DEADLINE_S)
        ready = pair.decode_from_executor(ours.recv(pair.PACKET_MAX_BYTES))
        assert isinstance(ready, pair.Ready)
        assert (ready.executor.pid, ready.executor.start_ticks) == (process.pid, start_ticks(process.pid))
        ours.close()
        assert process.wait(DEADLINE_S) == 0


def test_a_run_is_greeted_reported_saved_and_released(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sh", "-c", "echo out; echo err >&2; exit 3")
    result, free = rig.finish(executor, run_id)
    assert (result.status, result.reason, result.exit_code, result.signal) == (Status.ERROR, Reason.EXIT_CODE, 3, None)
    assert (result.stdout.head, result.stderr.head) == (b"out\n", b"err\n")
    assert rig.saved(run_id) == result
    assert (free.acknowledged, free.fit) == (True, True)
    assert free.rss_kib > 5_000
    assert rig.lock_byte(run_id) == rundir.TASK_OVER
    assert not rig.is_locked(run_id)
    hello = rig.scheduler.hellos[0]
    assert (hello.run, hello.secret, hello.pid) == (run_id, "secret-of-" + run_id, executor.pid)
    assert len(rig.scheduler.reports) == 1


def test_times_are_those_of_the_task(rig: Rig, executor: Executor) -> None:
    result = rig.shell(executor, "sleep 0.3")
    assert result.started_ms is not None
    assert 300 <= result.duration_ms < 2000
    assert abs(result.ended_ms - result.started_ms - result.duration_ms) <= 50


def test_the_lock_is_held_and_says_zero_while_the_task_runs(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sleep", "300")
    rig.wait_for("hello", lambda: rig.scheduler.hellos)
    assert rig.is_locked(run_id)
    assert rig.lock_byte(run_id) == rundir.TASK_MAY_RUN
    executor.pair.send(pair.encode(pair.CancelRun(run_id, "operator")))
    result, _ = rig.finish(executor, run_id)
    assert (result.status, result.reason) == (Status.ERROR, Reason.CANCELLED)


def test_only_the_named_run_is_cancelled(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sh", "-c", "read line", input="")
    executor.pair.send(pair.encode(pair.CancelRun("manual:test:other", "operator")))
    result, _ = rig.finish(executor, run_id)
    assert result.reason is Reason.EXIT_CODE


def test_cancel_in_the_answer_to_hello(rig: Rig, executor: Executor) -> None:
    rig.scheduler.cancel[rig.run_id(1)] = "superseded"
    result = rig.run(executor, "sleep", "300")
    assert (result.reason, result.message) == (Reason.CANCELLED, "cancelled: superseded")


def test_a_cancel_that_comes_after_the_end_changes_nothing(rig: Rig, executor: Executor) -> None:
    rig.scheduler.acknowledge = False
    run_id = rig.begin(executor, "true")
    rig.reported(run_id)
    executor.pair.send(pair.encode(pair.CancelRun(run_id, "operator")))
    rig.scheduler.send(run.HelloAnswer(run_id, "i", "operator"))
    rig.wait_for("a second report", lambda: len(rig.scheduler.reports) > 1)
    assert outcome.decode(rig.scheduler.reports[-1].outcome).status is Status.OK
    rig.scheduler.send(run.Recorded(run_id))
    rig.finish(executor, run_id)


def test_many_runs_leave_nothing_behind(rig: Rig, executor: Executor) -> None:
    rig.shell(executor, "cd /tmp; export A=1; umask 0; (true &); echo x")
    before = state_of(executor.pid)
    for _ in range(30):
        rig.shell(executor, "cd /tmp; export A=1; umask 0; (true &); echo x")
    assert state_of(executor.pid) == before
    assert executor.descendants() == []
    assert before["cwd"] == "/"


def state_of(pid: int) -> dict[str, object]:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    keep = ("SigBlk", "SigIgn", "SigCgt", "Umask", "Threads")
    fields: dict[str, object] = {line.split(":")[0]: line for line in status if line.startswith(keep)}
    fields["cwd"] = os.readlink(f"/proc/{pid}/cwd")
    fields["environ"] = Path(f"/proc/{pid}/environ").read_bytes()
    fields["fds"] = sorted(os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    return fields


def test_an_outcome_is_repeated_until_it_is_recorded(rig: Rig, executor: Executor) -> None:
    rig.scheduler.acknowledge = False
    run_id = rig.begin(executor, "true")
    rig.wait_for("three reports", lambda: len(rig.scheduler.reports) >= 3)
    assert len({report.outcome for report in rig.scheduler.reports}) == 1
    assert all(report.saved for report in rig.scheduler.reports)
    assert rig.is_locked(run_id)
    assert not executor.packets
    rig.scheduler.send_to_peer_of(run_id, run.Recorded("manual:test:other"))
    rig.scheduler.send(run.Recorded(run_id))
    _, free = rig.finish(executor, run_id)
    assert free.acknowledged


def test_without_a_scheduler_a_run_goes_on_and_is_reported_when_one_comes(rig: Rig, executor: Executor) -> None:
    rig.scheduler.stop()
    run_id = rig.publish(Command(["sh", "-c", "echo done"]), executor)
    rig.hand_over(executor, run_id)
    directory = rig.directory(run_id)
    end = now_ms() + 10_000
    while not (directory / rundir.OUTCOME).exists():
        assert now_ms() < end
    assert rig.is_locked(run_id)
    rig.scheduler.start()
    begun = now_ms()
    _, free = rig.finish(executor, run_id)
    assert free.acknowledged
    assert now_ms() - begun < 3000


def test_a_new_scheduler_is_greeted_at_once(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sleep", "300")
    rig.wait_for("hello", lambda: rig.scheduler.hellos)
    rig.scheduler.stop()
    rig.scheduler.hellos.clear()
    rig.scheduler.start()
    begun = now_ms()
    rig.wait_for("hello", lambda: rig.scheduler.hellos)
    assert now_ms() - begun < 2000, "the interval of 5 s is not waited for"
    executor.pair.send(pair.encode(pair.CancelRun(run_id, "")))
    rig.finish(executor, run_id)


def test_one_hello_is_unanswered_at_a_time(rig: Rig, executor: Executor) -> None:
    rig.scheduler.answer_hello = False
    run_id = rig.begin(executor, "sleep", "7")
    rig.finish(executor, run_id)
    assert len(rig.scheduler.hellos) == 1


def test_hello_is_the_heartbeat(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sleep", "7")
    rig.finish(executor, run_id)
    assert len(rig.scheduler.hellos) == 2


def test_end_of_file_ends_an_idle_executor(rig: Rig, executor: Executor) -> None:
    executor.close_pair()
    assert executor.wait_exit() == 0


def test_end_of_file_lets_a_run_finish_and_be_acknowledged(rig: Rig, executor: Executor) -> None:
    rig.scheduler.acknowledge = False
    run_id = rig.begin(executor, "sh", "-c", "sleep 0.5; echo done")
    rig.wait_for("hello", lambda: rig.scheduler.hellos)
    executor.close_pair()
    assert rig.reported(run_id).status is Status.OK
    assert executor.process.poll() is None
    rig.scheduler.send(run.Recorded(run_id))
    assert executor.wait_exit() == 0
    assert not rig.is_locked(run_id)


def test_a_run_that_is_in_the_pair_when_it_closes_is_run(rig: Rig, executor: Executor) -> None:
    # A Free that its launcher never read turns the end of the pair into a reset, which comes before the packet.
    first = rig.begin(executor, "true")
    rig.reported(first)
    rig.wait_for("the lock's release", lambda: not rig.is_locked(first))
    os.kill(executor.pid, signal.SIGSTOP)
    second = rig.begin(executor, "true")
    executor.close_pair()
    os.kill(executor.pid, signal.SIGCONT)
    assert rig.reported(second).status is Status.OK
    assert executor.wait_exit() == 0


def test_two_runs_in_the_pair_are_run_one_after_the_other(rig: Rig, executor: Executor) -> None:
    first = rig.begin(executor, "sleep", "0.3")
    second = rig.begin(executor, "true")
    assert rig.packet(executor, pair.Free).run == first
    assert rig.packet(executor, pair.Free).run == second
    assert rig.reported(first).started_ms is not None


def test_a_run_without_its_lock_is_not_begun(rig: Rig, executor: Executor) -> None:
    run_id = rig.publish(Command(["true"]), executor)
    rig.hand_over(executor, run_id, with_lock=False)
    free = rig.packet(executor, pair.Free)
    assert (free.run, free.acknowledged, free.fit) == (run_id, False, False)
    assert not rig.scheduler.hellos


def test_sigterm_while_idle_asks_to_be_retired(rig: Rig, executor: Executor) -> None:
    os.kill(executor.pid, signal.SIGTERM)
    assert rig.packet(executor, pair.Unfit).why == "terminated"
    assert executor.process.poll() is None
    executor.close_pair()
    assert executor.wait_exit() == 0


def test_sigterm_with_a_run_ends_the_task_and_saves_terminated(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sleep", "300")
    rig.wait_for("hello", lambda: rig.scheduler.hellos)
    os.kill(executor.pid, signal.SIGTERM)
    result, free = rig.finish(executor, run_id)
    assert (result.status, result.reason, result.signal) == (Status.ERROR, Reason.TERMINATED, signal.SIGTERM)
    assert rig.saved(run_id) == result
    assert not free.fit


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_signals_of_a_terminal_change_nothing(rig: Rig, executor: Executor, number: signal.Signals) -> None:
    os.kill(executor.pid, number)
    assert rig.run(executor, "true").status is Status.OK


def test_garbage_on_either_socket_costs_nothing(rig: Rig, executor: Executor) -> None:
    executor.pair.send(b"\xff\x00garbage")
    executor.pair.send(msgspec.msgpack.encode([99, "later message"]))
    rig.scheduler.acknowledge = False
    run_id = rig.begin(executor, "true")
    rig.reported(run_id)
    rig.scheduler.send_raw(run_id, b"garbage")
    rig.scheduler.send_raw(run_id, b"")
    rig.scheduler.send(run.Recorded(run_id))
    _, free = rig.finish(executor, run_id)
    assert free.fit


@pytest.mark.parametrize("damage", ["missing", "cut", "foreign run"])
def test_an_intent_that_cannot_be_used_is_an_outcome(rig: Rig, executor: Executor, damage: str) -> None:
    run_id = rig.publish(Command(["true"]), executor)
    intent = rig.directory(run_id) / rundir.INTENT
    match damage:
        case "missing":
            intent.unlink()
        case "cut":
            intent.write_bytes(intent.read_bytes()[:-5])
        case _:
            other = rig.publish(Command(["true"]), executor)
            intent.write_bytes((rig.directory(other) / rundir.INTENT).read_bytes())
    rig.hand_over(executor, run_id)
    result, free = rig.finish(executor, run_id)
    assert result.status is Status.ERROR
    assert result.reason is (Reason.SETUP_FAILED if damage == "missing" else Reason.INVALID_SPEC)
    assert result.started_ms is None
    assert free.fit


def test_an_outcome_that_cannot_be_saved_is_reported_so_and_saved_later(rig: Rig, executor: Executor) -> None:
    rig.scheduler.acknowledge = False
    run_id = rig.publish(Command(["true"]), executor)
    in_the_way = rig.directory(run_id) / rundir.OUTCOME_NEW
    in_the_way.mkdir()
    rig.hand_over(executor, run_id)
    rig.wait_for("a report", lambda: rig.scheduler.reports)
    assert not rig.scheduler.reports[0].saved
    assert rig.is_locked(run_id)
    in_the_way.rmdir()
    rig.wait_for("a saved report", lambda: rig.scheduler.reports[-1].saved)
    assert rig.saved(run_id) == rig.reported(run_id)
    rig.scheduler.send(run.Recorded(run_id))
    rig.finish(executor, run_id)


def test_progress_is_throttled(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.3; done")
    rig.finish(executor, run_id)
    assert 1 <= len(rig.scheduler.progress) <= 3
    assert rig.scheduler.progress[-1].run == run_id
    assert rig.scheduler.progress[-1].phase == "running"
    assert rig.scheduler.progress[-1].stdout_bytes >= 6


def test_everything_of_a_run_is_in_the_executors_own_cgroup(rig: Rig, executor: Executor) -> None:
    from cronward.protocol.cgroup import executor_cgroup, own_cgroup
    from cronward.protocol.identity import ProcessIdentity, boot_id

    parent = own_cgroup()
    if parent is None or not os.access(parent, os.W_OK):
        pytest.skip("cgroup2 is not writable here")
    ticks = start_ticks(executor.pid)
    assert ticks is not None
    group = executor_cgroup(ProcessIdentity(executor.pid, ticks, boot_id()), parent)
    rig.begin(executor, "sh", "-c", "setsid sleep 300 & sleep 300")
    rig.wait_for("three processes", lambda: len(executor.descendants()) >= 2)
    family = {executor.pid, *executor.descendants()}
    members = {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
    assert family <= members
    (group / "cgroup.kill").write_text("1")
    executor.process.wait(DEADLINE_S)
    rig.wait_for("the end of all", lambda: not any(alive(pid) for pid in members))
    group.rmdir()
