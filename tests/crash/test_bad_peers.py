"""Peers gone bad: stopped ones, and those that talk nonsense, on every socket. Each gets a clear answer or a logged
refusal, and meanwhile a client of the control socket is served as ever."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import zmq

from cronward.protocol import control, ids, launch, locks, outcome, run, rundir, sockets
from cronward.protocol.launch import GatewayState, Gone, PoolState, RunState
from cronward.protocol.version import VERSION
from cronward.protocol.views import CancelAnswer, ServiceStatus
from tests.support.control import ControlClient
from tests.support.false_launcher import acting_as_launcher
from tests.support.instance import Instance
from tests.support.processes import state
from tests.support.waiting import wait_until

ANSWER_MAX_S = 2.0
"""No answer may take longer: a stall of the loop would be one of seconds. (A few ms are normal; machines are busy.)"""


@contextmanager
def served(instance: Instance) -> Iterator[None]:
    """Somebody asks for the status all the time and has to be answered each time."""
    over = threading.Event()
    times_s: list[float] = []
    problems: list[Exception] = []

    def ask() -> None:
        with ControlClient(instance.paths.control) as client:
            while not over.wait(0.01):
                before = time.monotonic()
                try:
                    client.call("service.status", ServiceStatus, timeout_s=20)
                except Exception as error:
                    problems.append(error)
                    return
                times_s.append(time.monotonic() - before)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
        wait_until(lambda: len(times_s) > 5 or bool(problems), "some answers came")
    finally:
        over.set()
        thread.join()
    print(f"{len(times_s)} answers, slowest {max(times_s, default=0) * 1000:.0f} ms")
    assert not problems
    assert max(times_s) < ANSWER_MAX_S


@pytest.fixture
def ready(instance: Instance) -> Instance:
    return instance.start()


@contextmanager
def peer(path: Path) -> Iterator[zmq.Socket[bytes]]:
    """A connection to one of the scheduler's sockets that may send anything."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        socket = sockets.dealer(context, str(path), -1)
        assert socket.poll(10_000, zmq.POLLOUT)
        yield socket
    finally:
        context.destroy(linger=1000)


def executor_of(instance: Instance, run_id: str) -> int:
    data = (instance.paths.run_directory(run_id) / rundir.INTENT).read_bytes()
    return rundir.decode_intent(data).executor.pid


def assert_works(instance: Instance) -> None:
    """A run starts and ends well."""
    run_id = instance.run_now(instance.add_command_job(["/bin/true"]))
    assert instance.wait_for_run(run_id).state == "ok"


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state(pid) == "T", f"{pid} has stopped")


# stopped processes


def test_a_stopped_executor_holds_its_own_run_up_and_nothing_else(ready: Instance) -> None:
    run_id = ready.start_job(300)
    pid = executor_of(ready, run_id)
    stop(pid)
    with served(ready):
        wait_until(lambda: ready.sidelog.count("job:end") == 1, "the task goes on without its executor")
        assert_works(ready)
        assert ready.run_view(run_id).state == "active"
    os.kill(pid, signal.SIGCONT)
    assert ready.wait_for_run(run_id).state == "ok"


def test_a_stopped_launcher_holds_launches_up_which_then_start_or_are_said_to_be_lost(ready: Instance) -> None:
    """Runs that were started are recorded meanwhile. What waits is started at most once when it goes on."""
    first = ready.start_job(300)
    ready.launcher.pause()
    with served(ready):
        assert ready.wait_for_run(first).state == "ok", "executors need no launcher"
        waiting = ready.run_now(ready.add_command_job(ready.sidelog.command("waiting")))
        wait_until(lambda: ready.run_view(waiting).state == "active", "its launch is sent")
        wait_until(lambda: ready.status().launcher.state == "absent", "its silence is noticed", 30, poll_s=0.1)
        assert ready.run_view(waiting).state == "active", "no silence settles a run"
    ready.launcher.resume()
    ready.wait_reconciled(30)
    run_view = ready.wait_for_run(waiting)
    assert (run_view.state, run_view.reason) in (("ok", None), ("error", "launch_lost"))
    assert ready.sidelog.count("waiting") == (run_view.state == "ok")


def test_a_stopped_scheduler_finds_everything_as_it_was(ready: Instance) -> None:
    """Executors and launcher wait for it: outcomes are repeated, and nothing is interrupted."""
    run_id = ready.start_job(200)
    ready.scheduler.pause()
    saved = ready.paths.run_directory(run_id) / rundir.OUTCOME
    wait_until(saved.exists, "the run ends and is saved")
    end = time.monotonic() + 7  # longer than the silence that makes a launcher register anew
    wait_until(lambda: time.monotonic() > end, "the launcher has given the scheduler up", 15, poll_s=0.1)
    ready.scheduler.resume()
    assert ready.wait_for_run(run_id).state == "ok"
    ready.wait_reconciled()
    assert_works(ready)
    assert ready.sidelog.count("job:start") == 1
    assert not ready.events("notice.sent")


# nonsense


GARBAGE = (b"", b"\0", b"\xc1" * 10, b"{", b"null", b"[]", b"\xff" * 5000, b"\x91\x63", b'{"id":1}', b"[" * 100_000)


def garbage_and_cut(messages: list[bytes]) -> list[bytes]:
    return [*GARBAGE, *(message[:length] for message in messages for length in range(0, len(message), 7))]


def launcher_messages(instance: Instance, run_id: str) -> list[bytes]:
    """What a launcher of an earlier epoch or another instance says."""
    status = instance.status()
    epoch = status.launcher.epoch
    old: list[launch.FromLauncher] = [
        launch.Inventory("another", epoch, {run_id: RunState.ABSENT}),
        launch.Inventory(status.instance, 0, {run_id: RunState.ABSENT}),
        launch.Heartbeat("another", epoch, GatewayState.DOWN, PoolState(), "cannot"),
        launch.Leaving("another", epoch),
        launch.Accepted(run_id, 1),
        launch.Forgotten([run_id]),
    ]
    return [launch.encode(message) for message in old]


def replayed(instance: Instance, run_id: str) -> list[bytes]:
    """What only the launcher of this very epoch could say: believed, it would end the run's record."""
    status = instance.status()
    epoch = status.launcher.epoch
    launcher = locks.last_holder(instance.paths.launcher_lock)
    assert launcher is not None
    false: list[launch.FromLauncher] = [
        launch.Inventory(status.instance, epoch, {run_id: RunState.ABSENT}),
        launch.Exited(run_id, Gone.INTERRUPTED, None, "false"),
        launch.Refused(run_id, launch.RefuseReason.SPAWN_FAILED, "false"),
        launch.Heartbeat(status.instance, epoch, GatewayState.DOWN, PoolState(), "cannot"),
        launch.Leaving(status.instance, epoch),
        launch.Register(launcher, VERSION),
    ]
    return [launch.encode(message) for message in false]


def executor_messages(run_id: str) -> list[bytes]:
    """With the secret of another run."""
    secret = ids.run_secret(b"another key", run_id)
    body = outcome.encode(outcome.Outcome(run_id, outcome.Status.ERROR, outcome.Reason.SIGNAL, "false", 1, 2, 3))
    false: list[run.FromExecutor] = [
        run.Hello(run_id, secret, 1),
        run.Progress(run_id, "running", 10**9, 10**9),
        run.Report(run_id, secret, body),
        run.Report("unknown", secret, body),
    ]
    return [run.encode(message) for message in false]


def test_nonsense_and_replays_of_strangers_change_nothing(ready: Instance) -> None:
    """Garbage, cut, old, false and replayed messages while a run lasts."""
    run_id = ready.start_job(2500)
    epoch = ready.status().launcher.epoch
    with served(ready), peer(ready.paths.launch) as launcher, peer(ready.paths.run) as executor:
        for socket, messages in (
            (launcher, launcher_messages(ready, run_id) + replayed(ready, run_id)),
            (executor, executor_messages(run_id)),
        ):
            for data in (*messages, *garbage_and_cut(messages), *messages):
                socket.send(data)
        ready.wait_event("message.undecodable", count=50)
        ready.wait_event("run.wrong_secret", count=3)
        view = ready.run_view(run_id)
        assert (view.state, view.stdout) == ("active", None)
        assert_works(ready)
    assert ready.wait_for_run(run_id).state == "ok"
    assert ready.run_view(run_id).run_id == run_id, "the record is kept"
    assert ready.status().launcher.epoch == epoch, "the real launcher was not disturbed"
    assert ready.status().launcher.state == "ready"
    assert not ready.events("message.failed")
    assert len(ready.events("launcher.stranger")) == 1, "said once"


def test_nonsense_of_the_launcher_itself_is_logged_and_changes_nothing(ready: Instance) -> None:
    """Garbage, cut and old messages from the process that holds the launcher's lock."""
    run_id = ready.start_job(2500)
    with served(ready), acting_as_launcher(ready) as launcher:
        messages = launcher_messages(ready, run_id)
        for data in (*messages, *garbage_and_cut(messages), *messages):
            launcher.send(data)
        ready.wait_event("message.undecodable", count=50)
        assert launcher.poll(10_000)
        assert isinstance(launch.decode_to_launcher(launcher.recv()), launch.RegisterAgain)
        assert ready.run_view(run_id).state == "active"
    ready.wait_reconciled()
    assert_works(ready)
    assert ready.wait_for_run(run_id).state == "ok"
    assert not ready.events("message.failed")
    assert not ready.events("launcher.stranger")


def test_the_secret_of_one_run_opens_no_other(ready: Instance) -> None:
    run_id = ready.start_job(1500)
    key = ready.paths.secret_key.read_bytes()
    own = ids.run_secret(key, "another run")
    body = outcome.encode(outcome.Outcome(run_id, outcome.Status.ERROR, outcome.Reason.SIGNAL, "false", 1, 2, 3))
    with peer(ready.paths.run) as stranger:
        stranger.send(run.encode(run.Report(run_id, own, body)))
        ready.wait_event("run.wrong_secret")
        stranger.send(run.encode(run.Report(run_id, ids.run_secret(key, run_id), msgspec.msgpack.encode([1]))))
        ready.wait_event("run.bad_outcome")
    assert ready.wait_for_run(run_id).state == "ok"


@pytest.mark.parametrize("name", ["control", "query"])
def test_nonsense_from_clients_is_answered_with_a_code(ready: Instance, name: str) -> None:
    path = ready.paths.control if name == "control" else ready.paths.query
    good = msgspec.json.encode({"type": "req", "id": 7, "method": "service.status", "params": {}})
    with served(ready), ControlClient(path) as client:
        sent = [data for data in garbage_and_cut([good]) if data]
        for data in sent:
            client.send_bytes(data)
            answer = client.receive()
            assert not answer.ok
            assert answer.error is not None
            assert answer.error.code in ("INVALID_REQUEST", "UNKNOWN_METHOD")
        if name == "query":
            client.send("cron.add", ready.job(["/bin/true"]))
            refused = client.receive()
            assert refused.error is not None
            assert refused.error.code == "FORBIDDEN"
        for _ in range(3):  # the same bytes again and again are as many requests
            client.send_bytes(good)
            assert client.receive().id == 7
    assert not ready.events("request.failed")


@pytest.mark.parametrize("name", ["control", "query", "launch", "run"])
def test_an_oversized_message_costs_its_sender_alone(ready: Instance, name: str) -> None:
    path = {"query": ready.paths.query}.get(name, ready.paths.runtime / name)
    bounds = {"launch": launch.MESSAGE_MAX_BYTES, "run": run.MESSAGE_MAX_BYTES}
    size = bounds.get(name, control.REQUEST_MAX_BYTES) + 1
    run_id = ready.start_job(1000)
    with served(ready), peer(path) as sender:
        for _ in range(20):
            if sender.poll(5_000, zmq.POLLOUT):
                sender.send(b"x" * size)
        assert_works(ready)
    assert ready.wait_for_run(run_id).state == "ok"
    assert ready.scheduler.alive


# impostors


def test_an_impostor_launcher_is_not_welcome_and_settles_nothing(ready: Instance) -> None:
    """One that was started with the wrong state directory knows none of the live runs: it must not be asked."""
    run_id = ready.start_job(2500)
    other = ready.root / "other"
    with served(ready):
        impostor = ready.start_launcher({"CRONWARD_STATE_DIR": str(other)})
        refused = ready.wait_event("launcher.stranger")
        assert refused[0]["launcher_pid"] == impostor.pid
        assert_works(ready)
        assert impostor.terminate() == 0
    assert len(ready.events("launcher.stranger")) == 1, "said once"
    assert ready.wait_for_run(run_id).state == "ok"
    assert not ready.events("launcher.epoch_closed")


# the executor's ends


def test_nonsense_from_the_scheduler_costs_an_executor_nothing(instance: Instance) -> None:
    """In place of the scheduler somebody else answers the executor with nonsense; then the scheduler is back."""
    instance.start()
    run_id = instance.start_job(1500)
    instance.scheduler.kill()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        false = sockets.router(context, str(instance.paths.run), run.MESSAGE_MAX_BYTES)
        assert false.poll(15_000), "the executor greets it"
        address, _ = false.recv_multipart()
        answers: list[run.ToExecutor] = [
            run.HelloAnswer("another", "i", "cancelled"),
            run.Recorded("another"),
            run.Recorded(run_id),
        ]
        for data in (*GARBAGE, *(run.encode(answer) for answer in answers)):
            false.send_multipart([address, data])
    finally:
        context.destroy(linger=200)
    instance.start_scheduler()
    assert instance.wait_for_run(run_id).state == "ok"
    assert instance.sidelog.count("job:end") == 1


def test_cancelling_a_run_whose_executor_has_stopped(ready: Instance) -> None:
    """It is asked, and asked again; what became of it is recorded when it goes on, and nothing is invented before."""
    run_id = ready.start_job(60_000)
    pid = executor_of(ready, run_id)
    stop(pid)
    with served(ready):
        answer = ready.client().call("run.cancel", CancelAnswer, {"runId": run_id, "why": "stopped"})
        assert answer.run_id == run_id
        assert_works(ready)
        assert ready.run_view(run_id).state == "active"
    os.kill(pid, signal.SIGCONT)
    view = ready.wait_for_run(run_id)
    assert (view.state, view.reason) == ("error", "cancelled")
