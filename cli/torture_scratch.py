"""A scratch installation for torture: its directories, its daemons, and failpoints that can be armed while they run."""

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from cronward.cli import torture_processes
from cronward.cli.main import Options
from cronward.cli.processes import LAUNCHER, SCHEDULER, serve_command
from cronward.cli.session import pause
from cronward.cli.torture_logs import DaemonLogs
from cronward.cli.torture_processes import Process
from cronward.cli.torture_windows import ROWS, Cell, Kind, Victims
from cronward.protocol.client import ControlClient, Unanswered
from cronward.protocol.clock import Clock
from cronward.protocol.errors import Code, CronwardError, Unreachable
from cronward.protocol.paths import Paths, resolve
from cronward.protocol.views import ServiceStatus

DEADLINE_MS = 60_000
"""Everything that is waited for takes well below a second on a machine that is not busy."""

LOOK_MS = 4
CONFIG = """\
[retry]
max_retries = 0
backoff_s = [0.001]

[catch_up]
grace_s = 3600
"""
"""No deliberate delay: a slot is served as soon as somebody can, whatever became of the runs before it."""

_ASK_MS = 300
_PROCESSES = {Kind.SCHEDULER: SCHEDULER, Kind.LAUNCHER: LAUNCHER}
_PASSED = "passed"


class Stuck(CronwardError):
    """Something did not happen in time; the text says what."""

    def __init__(self, what: str) -> None:
        super().__init__(Code.TIMEOUT, what)


def wait_until(clock: Clock, condition: Callable[[], bool], what: str, deadline_ms: int = DEADLINE_MS) -> None:
    """Returns as soon as `condition` holds. Raises Stuck."""
    end_ms = clock.mono_ms() + deadline_ms
    while not condition():
        if clock.mono_ms() >= end_ms:
            raise Stuck(f"not within {deadline_ms // 1000} s: {what}")
        pause(LOOK_MS)


class Daemon:
    """One life of a daemon, with the action that its failpoints are armed with."""

    def __init__(self, argv: list[str], environ: dict[str, str], log: Path, armed: str) -> None:
        self.armed = armed
        self.log = log
        ready_fd, write_fd = os.pipe2(os.O_CLOEXEC)
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*argv, "--ready-fd", str(write_fd)],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(write_fd,),
                start_new_session=True,
                cwd="/",
            )
        os.close(write_fd)
        self._ready_fd: int | None = ready_fd

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait_ready(self) -> None:
        """Raises Stuck with the end of its log."""
        if self._ready_fd is None:
            return
        readable, _, _ = select.select([self._ready_fd], [], [], DEADLINE_MS / 1000)
        said = os.read(self._ready_fd, 1) if readable else b""
        self.close()
        if said != b"\n":
            raise Stuck(f"{self.log.name}: not ready; its log ends: {self.log.read_text(errors='replace')[-1000:]}")

    def close(self) -> None:
        if self._ready_fd is not None:
            os.close(self._ready_fd)
            self._ready_fd = None


class Scratch:
    """One state and one runtime directory below `root`, one scheduler, one launcher.

    A daemon is started with all its points armed by one action, and with the mark of each of them, so that it passes
    them all. A point is armed while the daemon runs by removing its mark, and acts once, since acting leaves the mark.
    """

    def __init__(self, root: Path, clock: Clock, capacity: int) -> None:
        self.root = root
        self.clock = clock
        self.capacity = capacity
        self.hits = root / "hits"
        self.hits.mkdir(parents=True)
        for point in ROWS:
            self._mark(point)
        config = root / "cronward.toml"
        config.write_text(CONFIG)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CRONWARD_")}
        self._environ = inherited | {
            "CRONWARD_STATE_DIR": str(root / "s"),
            "CRONWARD_RUNTIME_DIR": str(root / "r"),
            "CRONWARD_CONFIG": str(config),
            "CRONWARD_CAPACITY_RUNS": str(capacity),
            "CRONWARD_EXECUTORS_MAX": str(capacity + 16),
            "CRONWARD_FAILPOINTS_ENABLE": "yes",
            "CRONWARD_FAILPOINTS_DIR": str(self.hits),
        }
        self.paths: Paths = resolve(self._environ)
        self.daemons: dict[Kind, Daemon] = {}
        self.logs = DaemonLogs()
        self._lives = 0
        self._client: ControlClient | None = None

    # daemons

    def prepare(self, cell: Cell) -> None:
        """Both daemons run, reconciled, the one that the cell needs armed with its action. Raises Stuck."""
        daemon = _armed_by(cell.point)
        if daemon in self.daemons and self.daemons[daemon].armed != cell.armed:
            self._stop(daemon)
        elif cell.victims is Victims.ZYGOTE and Kind.ZYGOTE not in self.processes()[1].values():
            self._stop(Kind.LAUNCHER)  # which has not noticed yet that its zygote is dead
        self.start_missing([Kind.SCHEDULER, Kind.LAUNCHER], cell)
        wait_until(self.clock, self.is_ready, "the launcher is reconciled")

    def _stop(self, kind: Kind) -> None:
        if kind in self.daemons:
            self.daemons[kind].process.terminate()
            self._reap(kind)

    def start_missing(self, order: Iterable[Kind], coming: Cell) -> None:
        """Starts the daemons that do not run, armed for the cell that comes."""
        for kind in order:
            if kind not in self.daemons or not self.daemons[kind].alive:
                self._start(kind, coming.armed)
        for daemon in self.daemons.values():
            daemon.wait_ready()

    def _start(self, kind: Kind, action: str) -> None:
        points = [point for point in ROWS if _armed_by(point) is kind]
        armed = {"CRONWARD_FAILPOINTS": ";".join(f"{point}={action}" for point in points)}
        log = self.root / f"{self._lives:04}-{kind}.log"
        self._lives += 1
        self.logs.files.append(log)
        log.touch()
        argv = serve_command(_PROCESSES[kind], Options(None, None, None))
        self.daemons[kind] = Daemon(argv, self._environ | armed, log, action)

    def _reap(self, kind: Kind) -> None:
        wait_until(self.clock, lambda: not self.daemons[kind].alive, f"the {kind} ends")

    def reap(self, expected: Iterable[Kind]) -> None:
        """Waits for the end of daemons that were hit."""
        for kind in expected:
            if kind in self.daemons:
                self._reap(kind)

    def pid(self, kind: Kind) -> int | None:
        daemon = self.daemons.get(kind)
        return daemon.process.pid if daemon is not None and daemon.alive else None

    def processes(self) -> tuple[list[Process], dict[int, Kind]]:
        """All its live processes, and their kinds by pid."""
        found = torture_processes.belonging_to(self.root)
        return found, torture_processes.kinds(found, self.pid(Kind.SCHEDULER), self.pid(Kind.LAUNCHER))

    def is_quiet(self) -> bool:
        """Whether nothing is left but the daemons, and the zygote and executors without a run of this launcher."""
        found, kinds = self.processes()
        launcher = self.pid(Kind.LAUNCHER)
        others = [process for process in found if kinds[process.pid] not in (Kind.SCHEDULER, Kind.LAUNCHER)]
        return all(
            kinds[process.pid] is not Kind.TASK
            and process.parent == launcher
            and not torture_processes.holds_run(process.pid, self.paths.runs)
            for process in others
        )

    # failpoints

    def arm(self, point: str) -> None:
        """The next passage of the point acts."""
        (self.hits / point).unlink()

    def disarm(self, point: str) -> int | None:
        """The process that has acted at the point meanwhile, or None: then it does not act any more."""
        try:
            self._mark(point)
        except FileExistsError:
            wait_until(self.clock, lambda: self.hit_by(point) is not None, f"who acted at {point} writes its pid")
            return self.hit_by(point)
        return None

    def hit_by(self, point: str) -> int | None:
        """The process that acted at a point since it was armed, or None."""
        try:
            text = (self.hits / point).read_text()
        except FileNotFoundError:
            return None
        return int(text) if text.isdecimal() else None

    def _mark(self, point: str) -> None:
        with (self.hits / point).open("x") as mark:
            mark.write(_PASSED)

    # requests

    def client(self) -> ControlClient:
        """The connection of the thread that owns this object."""
        if self._client is None:
            self._client = ControlClient(self.paths.control, self.clock)
        return self._client

    def status(self) -> ServiceStatus | None:
        """None while no scheduler answers."""
        try:
            return self.client().request("service.status", {}, ServiceStatus, _ASK_MS)
        except (Unreachable, Unanswered):
            return None

    def is_ready(self) -> bool:
        status = self.status()
        return status is not None and status.launcher.state == "ready"

    def close(self) -> None:
        """Ends every process of it. Raises Stuck."""
        if self._client is not None:
            self._client.close()
            self._client = None
        wait_until(self.clock, self._killed, f"the processes of {self.root} end")
        for daemon in self.daemons.values():
            daemon.process.wait()
            daemon.close()

    def _killed(self) -> bool:
        left = torture_processes.belonging_to(self.root)
        torture_processes.send((process.pid for process in left), signal.SIGKILL)
        return not left


def _armed_by(point: str) -> Kind:
    """Whose environment arms the point: executors have the launcher's."""
    return Kind.SCHEDULER if point.startswith(f"{Kind.SCHEDULER}.") else Kind.LAUNCHER
