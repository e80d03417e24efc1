"""Real processes of a test: starting one, waiting for its readiness, reading its log, finding what it left."""

import os
import select
import signal
import subprocess
import time
from pathlib import Path

import msgspec

from tests.support.waiting import wait_until


class NotReady(AssertionError):
    """The process ended, or did not say that it is ready in time; the message holds the end of its log."""


LogLine = dict[str, str | int | float | bool | list[str] | None]


class Daemon:
    """One life of one process. Its standard error goes to `log`; `ready_fd` follows `argv` as `--ready-fd N`."""

    def __init__(self, argv: list[str], environ: dict[str, str], log: Path) -> None:
        self.log = log
        read_fd, write_fd = os.pipe()
        self._ready_fd: int | None = read_fd
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*argv, "--ready-fd", str(write_fd)],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                pass_fds=(write_fd,),
                start_new_session=True,
                cwd="/",
            )
        os.close(write_fd)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait_ready(self, deadline_s: float = 20) -> None:
        """Returns once the process has said that it is ready. Raises NotReady."""
        assert self._ready_fd is not None, "waited for before"
        readable, _, _ = select.select([self._ready_fd], [], [], deadline_s)
        said = os.read(self._ready_fd, 1) if readable else b""
        os.close(self._ready_fd)
        self._ready_fd = None
        if said != b"\n":
            problem = "ended before it was ready" if readable else f"not ready within {deadline_s:g} s"
            raise NotReady(f"{self.log.name}: {problem}; its log ends:\n{self.log.read_text()[-4000:]}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        self.process.kill()
        self.process.wait(timeout=10)

    def terminate(self, deadline_s: float = 15) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(timeout=deadline_s)

    def pause(self) -> None:
        """SIGSTOP, and waits until the process has stopped."""
        self.signal(signal.SIGSTOP)
        wait_until(lambda: state(self.pid) == "T", f"process {self.pid} is stopped")

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it if it lives."""
        if self.alive:
            self.signal(signal.SIGKILL)
        self.process.wait(timeout=10)
        if self._ready_fd is not None:
            os.close(self._ready_fd)
            self._ready_fd = None

    def lines(self) -> list[LogLine]:
        """Its structured log. A line that is no JSON (a traceback of the interpreter, say) fails the test."""
        return [msgspec.json.decode(line, type=LogLine) for line in self.log.read_bytes().splitlines()]

    def events(self, event: str) -> list[LogLine]:
        """The log lines of one event."""
        return [line for line in self.lines() if line["event"] == event]


def state(pid: int) -> str:
    """R, S, D, T, Z … of proc(5); empty if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]


def cpu_ms(pid: int) -> float:
    """CPU time that all threads of the process used so far."""
    total_ns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total_ns += int((task / "schedstat").read_text().split()[0])
    return total_ns / 1e6


def memory_kib(pid: int, field: str) -> int:
    """A line of /proc/PID/status such as VmRSS or VmHWM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0])
    raise KeyError(field)


def belonging_to(root: Path) -> list[int]:
    """Live processes that have `root` in their environment, and all their descendants; never this process.

    Daemons and executors have it in CRONWARD_STATE_DIR, jobs in a variable that `Instance` gives them.
    """
    marker = os.fsencode(root)
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # gone, or not ours to look at
            continue
        if fields[0] in "ZX":
            continue
        parents[int(entry.name)] = int(fields[1])
        if marker in environ:
            found.add(int(entry.name))
    while added := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= added
    return sorted(found)


def end_all(root: Path, deadline_s: float = 10) -> None:
    """Kills what belongs to `root` until nothing is left."""
    end = time.monotonic() + deadline_s
    while left := belonging_to(root):
        for pid in left:
            _kill(pid)
        assert time.monotonic() < end, f"processes {left} do not end"
        time.sleep(0.01)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
