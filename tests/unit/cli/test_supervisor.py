"""`up` with scripted daemons: crash loops, permanent ends, signals, orphans. Real processes and signals."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cronward.protocol import exits
from cronward.protocol.control import Request
from cronward.protocol.identity import own_identity
from cronward.protocol.paths import Paths
from tests.support.waiting import now_ms, wait_until
from tests.unit.cli.samples import run, service_status
from tests.unit.cli.scripted import ScriptedRouter, ok

ROOT = Path(__file__).parents[3]
READY = "echo >&$READY; "
STAY = "exec sleep 600"


class Supervised:
    """A running `supervise.py` and the JSON lines that it has written."""

    def __init__(self, scheduler: str, launcher: str, directory: Path, environ: dict[str, str]) -> None:
        self.log = directory / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.unit.cli.supervise", scheduler, launcher],
                cwd=ROOT,
                env=os.environ | environ,
                stderr=log,
                start_new_session=True,
            )

    def lines(self) -> list[dict[str, object]]:
        found = []
        for line in self.log.read_bytes().splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                found.append(msgspec.json.decode(line, type=dict[str, object]))
        return found

    def events(self, name: str) -> list[dict[str, object]]:
        return [line for line in self.lines() if line.get("event") == name]

    def wait_for(self, event: str, count: int = 1) -> None:
        wait_until(lambda: len(self.events(event)) >= count, f"{count} × {event} in {self.log.read_text()}", 10)

    def wait_for_text(self, text: str) -> None:
        wait_until(lambda: text in self.log.read_text(), f"{text!r} in {self.log.read_text()}", 10)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        return self.process.wait(10)


class Start:
    """Starts supervised processes and ends what is left of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.started: list[Supervised] = []

    def __call__(self, scheduler: str, launcher: str, **environ: str) -> Supervised:
        marked = environ | {"SUPERVISED_BY": str(self._directory)}
        self.started.append(Supervised(scheduler, launcher, self._directory, marked))
        return self.started[-1]

    def left(self) -> list[int]:
        """Processes that carry the mark of these."""
        marker = f"SUPERVISED_BY={self._directory}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if marker in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found


@pytest.fixture
def start(tmp_path: Path, paths: Paths) -> Iterator[Start]:
    starter = Start(tmp_path)
    yield starter
    for pid in starter.left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for supervised in starter.started:
        supervised.process.wait(10)


def idle_scheduler(control: ScriptedRouter, query: ScriptedRouter, active: int = 0) -> None:
    """Answers drain as a scheduler with so many active runs, and the snapshot that names them."""

    def answer(request: Request) -> list[bytes]:
        if request.method == "service.drain":
            return [ok(request, {"active": active, "queued": 0, "cancelled": 0})]
        live = [msgspec.to_builtins(run(state="active", job_name="long")) for _ in range(active)]
        service = msgspec.to_builtins(service_status(active=active))
        return [ok(request, {"instance": "one", "seq": 1, "service": service, "live": live, "nextSlots": []})]

    control.start(answer)
    query.start(answer)


def test_the_launcher_starts_once_the_scheduler_is_ready(start: Start, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    up = start(f"echo scheduler runs >&2; read x < {gate}; {READY}{STAY}", f"echo launcher runs >&2; {READY}{STAY}")
    up.wait_for_text("scheduler runs")
    assert "launcher runs" not in up.log.read_text()
    gate.write_text("\n")
    up.wait_for("up.ready")


def test_a_stop_of_the_idle_service_is_quick_and_in_order(
    start: Start, control: ScriptedRouter, query: ScriptedRouter
) -> None:
    """B142: an idle service ends within a second."""
    idle_scheduler(control, query)
    say = "trap 'echo {0} ends >&2; exit 0' TERM; {1}while :; do sleep 0.01; done"
    up = start(say.format("scheduler", READY), say.format("launcher", READY))
    up.wait_for("up.ready")
    began = now_ms()
    up.signal(signal.SIGTERM)
    assert up.end() == exits.OK
    assert now_ms() - began < 1_000
    text = up.log.read_text()
    assert text.index("launcher ends") < text.index("scheduler ends")
    assert start.left() == []


def test_a_crashing_daemon_is_started_again_ever_more_slowly(start: Start) -> None:
    up = start(READY + STAY, "echo born >&2; exit 3")
    up.wait_for("up.restart", 3)
    messages = [str(line["message"]) for line in up.events("up.restart")]
    assert [message.rpartition("in ")[2] for message in messages[:3]] == ["250 ms", "500 ms", "1.0 s"]
    assert "exit code 3" in messages[0]


@pytest.mark.parametrize("code", sorted(exits.PERMANENT))
def test_a_permanent_end_ends_everything_with_its_code(start: Start, code: int) -> None:
    up = start(READY + STAY, f"exit {code}")
    assert up.end() == code
    assert up.events("up.restart") == []
    assert start.left() == []


def test_a_service_that_runs_already_is_named_with_its_holder(start: Start, paths: Paths) -> None:
    paths.scheduler_lock.write_bytes(msgspec.json.encode(own_identity()))
    up = start(f"exit {exits.ALREADY_RUNNING}", STAY)
    assert up.end() == exits.ALREADY_RUNNING
    assert f"process {os.getpid()} holds {paths.scheduler_lock}" in str(up.events("up.held")[0]["message"])


def test_it_waits_for_runs_by_name_and_a_second_signal_does_not(
    start: Start, control: ScriptedRouter, query: ScriptedRouter
) -> None:
    """B143: a run that does not end holds a stop up only until somebody insists."""
    idle_scheduler(control, query, active=2)
    up = start(READY + STAY, READY + STAY)
    up.wait_for("up.ready")
    up.signal(signal.SIGINT)
    up.wait_for("up.waiting")
    assert str(up.events("up.waiting")[0]["message"]).startswith("waiting for 2 runs: long 4f1d2c8a90b1")
    assert up.process.poll() is None
    up.signal(signal.SIGINT)
    assert up.end() == exits.OK
    assert start.left() == []


def test_a_signal_during_the_start_does_not_wait(start: Start) -> None:
    up = start("echo starting >&2; " + STAY, STAY)
    up.wait_for_text("starting")
    up.signal(signal.SIGTERM)
    assert up.end() == exits.OK


def test_a_daemon_that_ignores_term_is_killed(start: Start) -> None:
    up = start("trap '' TERM; echo deaf >&2; while :; do sleep 0.05; done", STAY, PATIENCE_MS="300")
    up.wait_for_text("deaf")
    up.signal(signal.SIGTERM)
    assert up.end() == exits.OK


def test_hangup_is_passed_on(start: Start) -> None:
    listen = "trap 'echo {0} rereads >&2' HUP; {1}while :; do sleep 0.01; done"
    up = start(listen.format("scheduler", READY), listen.format("launcher", READY))
    up.wait_for("up.ready")
    up.signal(signal.SIGHUP)
    up.wait_for_text("scheduler rereads")
    up.wait_for_text("launcher rereads")


def test_what_its_daemons_leave_is_reaped(start: Start, tmp_path: Path) -> None:
    """An orphan becomes a child of `up`, and no zombie of it once it ends."""
    pid_file = tmp_path / "pid"
    up = start(READY + STAY, f"( sleep 0.3 & echo $! > {pid_file} ); {READY}{STAY}")
    up.wait_for("up.ready")
    wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()), "the orphan is born")
    orphan = Path(f"/proc/{pid_file.read_text().strip()}")
    assert orphan.joinpath("stat").read_text().rpartition(")")[2].split()[1] == str(up.process.pid)
    wait_until(lambda: not orphan.exists(), "the orphan is reaped", 5)


def test_a_daemon_has_a_session_of_its_own(start: Start) -> None:
    """So what a terminal sends to its processes reaches `up` alone."""
    up = start(f"echo pid $$ >&2; {READY}{STAY}", READY + STAY)
    up.wait_for("up.ready")
    pid = int(up.log.read_text().split("pid ")[1].split()[0])
    assert os.getsid(pid) == pid


def test_ctrl_z_does_not_stop_it(start: Start) -> None:
    up = start(READY + STAY, READY + STAY)
    up.wait_for("up.ready")
    up.signal(signal.SIGTSTP)
    up.signal(signal.SIGHUP)  # what it does only while it runs: here it ends `sleep`
    up.wait_for("up.restart")


def test_systemd_hears_ready_and_stopping(
    start: Start, tmp_path: Path, control: ScriptedRouter, query: ScriptedRouter
) -> None:
    idle_scheduler(control, query)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(control.path.parent / "notify"))
        notify.settimeout(10)
        up = start(READY + STAY, READY + STAY, NOTIFY_SOCKET=str(control.path.parent / "notify"))
        assert notify.recv(1000).startswith(b"READY=1")
        up.signal(signal.SIGTERM)
        assert notify.recv(1000).startswith(b"STOPPING=1")
        assert up.end() == 0
