"""What strangers, broken and greedy peers can do to a scheduler: nothing but be refused."""

import os
import random
from collections.abc import Iterator

import msgspec
import pytest
import zmq

from cronward.protocol import control, launch, outcome, run
from cronward.protocol.launch import Gone
from cronward.protocol.paths import Paths
from cronward.protocol.views import CronStatus, JobView
from tests.support.control import Answer, ControlClient
from tests.support.instance import Instance
from tests.support.processes import memory_kib
from tests.support.scheduler_rig import ScriptedExecutor, ScriptedLauncher, made, secret_of
from tests.support.waiting import wait_until


def garbage(seed: int) -> Iterator[bytes]:
    """Nothing, noise, and messages that were cut or changed."""
    random_bytes = random.Random(seed)  # repeatable
    whole = [
        launch.encode(launch.Exited("r" * 50, Gone.REPORTED, outcome.encode(made("r" * 50)))),
        launch.encode(launch.Inventory("i", 1, {})),
        run.encode(run.Report("r", "s", b"x" * 20)),
        b'{"type":"req","id":1,"method":"cron.list","params":{"limit":5}}',
    ]
    yield from (b"", b"\0", b"\xc1", b"\xff" * 64, b"{", b"[" * 5000, b"\x91" * 5000)
    for message in whole:
        for _ in range(20):
            yield message[: random_bytes.randrange(len(message))]
            at = random_bytes.randrange(len(message))
            yield message[:at] + random_bytes.randbytes(3) + message[at + 3 :]


def sockets_of(paths: Paths) -> dict[str, str]:
    return {
        "control": f"ipc://{paths.control}",
        "query": f"ipc://{paths.query}",
        "launch": f"ipc://{paths.launch}",
        "run": f"ipc://{paths.run}",
    }


@pytest.mark.parametrize("name", ["control", "query", "launch", "run"])
def test_garbage_costs_nothing(scheduler: Instance, ready: ScriptedLauncher, name: str) -> None:
    with zmq.Context[zmq.Socket[bytes]]() as context, context.socket(zmq.DEALER) as stranger:
        stranger.setsockopt(zmq.LINGER, 0)
        stranger.connect(sockets_of(scheduler.paths)[name])
        for data in garbage(7):
            stranger.send(data)
        stranger.send_multipart([b"", b"several", b"frames"])
        stranger.send_multipart([b"x"] * 100)
        run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
        assert ready.accept_one().run == run_id
        with ScriptedExecutor(scheduler.paths, run_id, secret_of(scheduler.paths, run_id)) as executor:
            executor.report()
    assert scheduler.scheduler.alive
    errors = [line for line in scheduler.scheduler.lines() if line["level"] == "error"]
    assert errors == []


def test_every_unreadable_request_is_answered(scheduler: Instance) -> None:
    with ControlClient(scheduler.paths.control) as client:
        count = 0
        for data in garbage(11):
            client.send_bytes(data)
            count += 1
        codes = {answer.error.code for answer in (client.receive() for _ in range(count)) if answer.error}
    assert codes <= {"INVALID_REQUEST", "UNKNOWN_METHOD"}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("control", control.REQUEST_MAX_BYTES),
        ("query", control.REQUEST_MAX_BYTES),
        ("launch", launch.MESSAGE_MAX_BYTES),
        ("run", run.MESSAGE_MAX_BYTES),
    ],
)
def test_what_is_too_big_is_not_read(scheduler: Instance, name: str, most: int) -> None:
    before = memory_kib(scheduler.scheduler.pid, "VmRSS")
    with zmq.Context[zmq.Socket[bytes]]() as context, context.socket(zmq.DEALER) as stranger:
        stranger.setsockopt(zmq.LINGER, 0)
        stranger.connect(sockets_of(scheduler.paths)[name])
        for _ in range(5):
            stranger.send(b"x" * (most + 1))
        scheduler.add_command_job(["/bin/true"])
        assert not stranger.poll(100)
    assert scheduler.status().jobs == 1
    assert memory_kib(scheduler.scheduler.pid, "VmRSS") - before < 32 * 1024


def test_the_biggest_job_that_is_accepted_can_be_launched(scheduler: Instance, ready: ScriptedLauncher) -> None:
    scheduler.run_now(scheduler.add_command_job(["/bin/true", "\u20ac" * 80_000]))
    assert len(ready.accept_one().job) > 240_000


def test_a_client_that_does_not_read_is_held_and_others_are_served(scheduler: Instance) -> None:
    count = 10_000
    before = memory_kib(scheduler.scheduler.pid, "VmRSS")
    with zmq.Context[zmq.Socket[bytes]]() as context, context.socket(zmq.DEALER) as greedy:
        greedy.setsockopt(zmq.LINGER, 0)
        greedy.setsockopt(zmq.SNDHWM, count)
        greedy.setsockopt(zmq.RCVHWM, 1)
        greedy.connect(sockets_of(scheduler.paths)["query"])
        for number in range(count):
            greedy.send(b'{"id":%d,"method":"service.status"}' % number, zmq.DONTWAIT)
        with ControlClient(scheduler.paths.control) as other:
            for _ in range(50):
                other.call("cron.status", CronStatus, timeout_s=2)
        codes: dict[str, int] = {}
        for number in range(count):
            assert greedy.poll(10_000)
            answer = msgspec.json.decode(greedy.recv(), type=Answer)
            assert answer.id == number  # in order, none is missing
            code = answer.error.code if answer.error else "ok"
            codes[code] = codes.get(code, 0) + 1
        assert codes.keys() == {"ok", "PEER_BACKLOG"}
        greedy.send(b'{"id":"again","method":"service.status"}')
        assert greedy.poll(10_000)
        assert msgspec.json.decode(greedy.recv(), type=Answer).ok  # having read, it is served again
    assert memory_kib(scheduler.scheduler.pid, "VmHWM") - before < 64 * 1024


def test_clients_that_come_and_go_leave_nothing(scheduler: Instance) -> None:
    before = len(os.listdir(f"/proc/{scheduler.scheduler.pid}/fd"))
    for _ in range(30):
        with ControlClient(scheduler.paths.control) as client:
            client.send("cron.status", {})  # and does not wait for the answer
    scheduler.add_command_job(["/bin/true"])
    wait_until(
        lambda: len(os.listdir(f"/proc/{scheduler.scheduler.pid}/fd")) <= before + 2, "their descriptors are closed"
    )


def test_pipelined_requests_are_answered_in_order(scheduler: Instance) -> None:
    with ControlClient(scheduler.paths.control) as client:
        many = (scheduler.job(["/bin/true"], fields={"name": f"job {number}"}) for number in range(300))
        names = [view.name for view in client.call_many("cron.add", JobView, many, window=100)]
    assert names == [f"job {number}" for number in range(300)]
