"""A real executor between a launcher and a scheduler that the test plays."""

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import zmq

from cronward.protocol import job, outcome, pair, run, rundir
from cronward.protocol.cgroup import EXECUTOR_PREFIX, own_cgroup
from cronward.protocol.clock import SystemClock
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.ids import run_key
from cronward.protocol.outcome import Outcome
from cronward.protocol.rundir import Intent, Limits
from cronward.protocol.sockets import router

DEADLINE_S = 20.0

NO_LIMITS = Limits(timeout_ms=0, no_output_ms=0, setup_ms=0, grace_ms=5000, cleanup_ms=20000, output_max_bytes=0)

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

T = TypeVar("T")


def wait_for(what: str, look: Callable[[], T | None], deadline_s: float = DEADLINE_S) -> T:
    """The first true result of `look`. Fails, saying `what`, after the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what}")
        time.sleep(0.005)


class Scheduler:
    """The ROUTER of `run`. Answers each Hello; acknowledges each Report unless told not to."""

    def __init__(self, path: Path) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.path = path
        self.hellos: list[run.Hello] = []
        self.progress: list[run.Progress] = []
        self.reports: list[run.Report] = []
        self.acknowledge = True
        self.answer_hello = True
        self.cancel: dict[str, str] = {}
        self.instance = "instance-1"
        self._peers: dict[str, bytes] = {}
        self.start()

    def start(self) -> None:
        self.socket = router(self._context, str(self.path), run.MESSAGE_MAX_BYTES)

    def stop(self) -> None:
        self.socket.close(0)
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def close(self) -> None:
        self.stop()
        self._context.term()

    def send(self, message: run.ToExecutor) -> None:
        """To the peer that last spoke of the message's run."""
        self.send_raw(message.run, run.encode(message))

    def send_to_peer_of(self, run_id: str, message: run.ToExecutor) -> None:
        self.send_raw(run_id, run.encode(message))

    def send_raw(self, run_id: str, data: bytes) -> None:
        try:
            self.socket.send_multipart([self._peers[run_id], data])
        except zmq.ZMQError as error:
            # The executor was killed on purpose.
            if error.errno != zmq.EHOSTUNREACH:
                raise

    def serve(self, timeout_ms: int = 0) -> None:
        """Takes and answers what comes within the time."""
        if not self.socket.poll(timeout_ms):
            return
        while True:
            try:
                address, data = self.socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            self._take(address, run.decode_from_executor(data))

    def _take(self, address: bytes, message: run.FromExecutor) -> None:
        self._peers[message.run] = address
        match message:
            case run.Hello():
                self.hellos.append(message)
                if self.answer_hello:
                    self.send(run.HelloAnswer(message.run, self.instance, self.cancel.get(message.run)))
            case run.Progress():
                self.progress.append(message)
            case run.Report():
                self.reports.append(message)
                if self.acknowledge:
                    self.send(run.Recorded(message.run))


class Executor:
    """One executor process and the launcher's end of its pair."""

    def __init__(self, process: subprocess.Popen[bytes], end: socket.socket) -> None:
        self.process = process
        self.pid = process.pid
        self.pair = end
        self.packets: list[pair.FromExecutor] = []

    def read(self, timeout_s: float = 0) -> None:
        """Takes the packets that come within the time."""
        ready, _, _ = select.select([self.pair], [], [], timeout_s)
        if ready:
            data = self.pair.recv(pair.PACKET_MAX_BYTES)
            if data:
                self.packets.append(pair.decode_from_executor(data))

    def close_pair(self) -> None:
        self.pair.close()

    def wait_exit(self) -> int:
        return self.process.wait(DEADLINE_S)

    def descendants(self) -> list[int]:
        return descendants(self.pid)


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, zombies too."""
    found: list[int] = []
    todo = [pid]
    while todo:
        for children in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids = [int(child) for child in children.read_text().split()]
                found += pids
                todo += pids
    return found


def alive(pid: int) -> bool:
    """Whether `pid` is a process and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


class Rig:
    """Makes executors, run directories and hand-overs, and waits for what becomes of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = root / "runs"
        self.runs.mkdir()
        self.scheduler = Scheduler(root / "run.sock")
        self.executors: list[Executor] = []
        self._count = 0

    def close(self) -> None:
        for executor in self.executors:
            executor.pair.close()
            if executor.process.poll() is None:
                below = executor.descendants()
                os.kill(executor.pid, signal.SIGCONT)
                executor.process.kill()
                for pid in below:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            executor.process.wait()
            self._remove_group(executor)
            assert executor.process.stderr is not None
            # Shown by pytest when the test fails.
            print(executor.process.stderr.read().decode(errors="replace"), end="")
            executor.process.stderr.close()
        self.scheduler.close()

    @staticmethod
    def _remove_group(executor: Executor) -> None:
        parent = own_cgroup()
        for group in parent.glob(f"{EXECUTOR_PREFIX}{executor.pid}-*") if parent else ():
            # Busy for as long as something that was left on purpose lives; the parent's launcher would wait, too.
            with contextlib.suppress(OSError):
                group.rmdir()

    def start(
        self, env: Mapping[str, str] | None = None, wrapper: Sequence[str] = (), deadline_s: float = DEADLINE_S
    ) -> Executor:
        """A ready executor. `env` is added to this process's; `wrapper` is a command that executes its arguments."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [*wrapper, sys.executable, "-m", "cronward.executor", str(theirs.fileno()), str(self.scheduler.path)],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **(env or {})},
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        executor = Executor(process, ours)
        self.executors.append(executor)
        self.packet(executor, pair.Ready, deadline_s)
        return executor

    def packet(self, executor: Executor, kind: type[T], deadline_s: float = DEADLINE_S) -> T:
        """The next packet of that kind."""

        def look() -> T | None:
            self.scheduler.serve()
            executor.read()
            for packet in executor.packets:
                if isinstance(packet, kind):
                    executor.packets.remove(packet)
                    return packet
            return None

        return wait_for(f"a {kind.__name__} from executor {executor.pid}", look, deadline_s)

    def publish(
        self,
        payload: job.Command,
        executor: Executor,
        limits: Limits = NO_LIMITS,
        leave_children: bool = False,
        path: str = PATH,
    ) -> str:
        """Makes the directory of a new run and returns the run's id."""
        self._count += 1
        run_id = self.run_id(self._count)
        definition = job.Definition("test", job.Every(every_ms=60_000), payload)
        identity = ProcessIdentity(executor.pid, 1, "boot")
        intent = Intent(
            run_id, "manual", job.encode(definition), limits, identity, None, path, leave_children=leave_children
        )
        directory = self.directory(run_id)
        directory.mkdir()
        (directory / rundir.INTENT).write_bytes(rundir.encode_intent(intent))
        (directory / rundir.LOCK).write_bytes(rundir.TASK_MAY_RUN)
        return run_id

    def run_id(self, number: int) -> str:
        """Id of the run that is made as `number`, from 1 on; unlike that of any other test."""
        return f"manual:{self.root}:{number}"

    def processes(self, run_id: str) -> list[int]:
        """Living processes of the run, wherever they are: those that have its id in their environment."""
        mark = b"CRONWARD_RUN_ID=" + run_id.encode() + b"\0"
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return found

    def directory(self, run_id: str) -> Path:
        return self.runs / run_key(run_id)

    def hand_over(self, executor: Executor, run_id: str, with_lock: bool = True) -> None:
        """Locks the run and sends it, as a launcher does: no copy of the descriptor stays here."""
        packet = pair.encode(pair.HandOver(run_id, str(self.directory(run_id)), "secret-of-" + run_id))
        if not with_lock:
            executor.pair.send(packet)
            return
        fd = os.open(self.directory(run_id) / rundir.LOCK, os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        socket.send_fds(executor.pair, [packet], [fd])
        os.close(fd)

    def begin(
        self,
        executor: Executor,
        *argv: str,
        limits: Limits = NO_LIMITS,
        leave_children: bool = False,
        path: str = PATH,
        **fields: object,
    ) -> str:
        """Hands a command over; `fields` are those of job.Command. Returns the run's id."""
        payload = msgspec.structs.replace(job.Command(list(argv)), **fields)
        run_id = self.publish(payload, executor, limits, leave_children, path)
        self.hand_over(executor, run_id)
        return run_id

    def finish(self, executor: Executor, run_id: str) -> tuple[Outcome, pair.Free]:
        """Waits for the outcome that was reported and for Free."""
        free = self.packet(executor, pair.Free)
        assert free.run == run_id
        return self.reported(run_id), free

    def publish_command(self, executor: Executor, *argv: str) -> str:
        """As `begin`, but not handed over yet."""
        return self.publish(job.Command(list(argv)), executor)

    def free(self, executor: Executor) -> pair.Free:
        """Of a trivial run: how the executor stands."""
        _, free = self.finish(executor, self.begin(executor, "true"))
        return free

    def run(self, executor: Executor, *argv: str, **options: object) -> Outcome:
        """Hands a command over and returns its outcome; the executor is free afterwards."""
        run_id = self.begin(executor, *argv, **options)  # type: ignore[arg-type]  # passed on as they are
        result, _ = self.finish(executor, run_id)
        return result

    def shell(self, executor: Executor, script: str, **options: object) -> Outcome:
        return self.run(executor, "sh", "-c", script, **options)

    def reported(self, run_id: str) -> Outcome:
        def look() -> Outcome | None:
            self.scheduler.serve()
            for report in self.scheduler.reports:
                if report.run == run_id:
                    return outcome.decode(report.outcome)
            return None

        return wait_for(f"a report of {run_id}", look)

    def saved(self, run_id: str) -> Outcome:
        """The outcome in the run's directory."""
        body = rundir.unseal((self.directory(run_id) / rundir.OUTCOME).read_bytes(), rundir.OUTCOME)
        return outcome.decode(body)

    def stdout(self, run_id: str) -> bytes:
        return (self.directory(run_id) / rundir.STDOUT).read_bytes()

    def is_locked(self, run_id: str) -> bool:
        fd = os.open(self.directory(run_id) / rundir.LOCK, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(fd)

    def lock_byte(self, run_id: str) -> bytes:
        return (self.directory(run_id) / rundir.LOCK).read_bytes()

    def wait_for(self, what: str, look: Callable[[], T | None]) -> T:
        """As the function, with the scheduler answering meanwhile."""

        def serve_and_look() -> T | None:
            self.scheduler.serve()
            return look()

        return wait_for(what, serve_and_look)


def now_ms() -> int:
    return SystemClock().mono_ms()


@contextlib.contextmanager
def rig(root: Path) -> Iterator[Rig]:
    made = Rig(root)
    try:
        yield made
    finally:
        made.close()
