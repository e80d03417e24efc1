"""A scratch installation of Cronward with real processes, for tests and benchmarks."""

import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Self

from cronward.protocol.paths import Paths
from cronward.protocol.views import JobView, RunAnswer, RunList, RunView, ServiceStatus
from tests.support import failpoints
from tests.support.control import ControlClient, Rejected
from tests.support.namespaces import SmallDisk
from tests.support.processes import Daemon, LogLine, belonging_to, end_all
from tests.support.sidelog import SideLog
from tests.support.waiting import now_ms, wait_until

FINISHED = ("ok", "error", "skipped")
NEVER: dict[str, object] = {"kind": "every", "everyMs": 365 * 86_400_000}
"""A schedule that is not due while a test lasts."""


def at(at_ms: int) -> dict[str, object]:
    """The schedule of a one-shot."""
    return {"kind": "at", "at": str(at_ms)}


class Instance:
    """One state directory, one runtime directory, at most one scheduler and one launcher at a time.

    The directories are short and below /tmp, since a socket's path holds 107 bytes. With `disk_mib` the state directory
    is a small disk of its own. `close` ends every process that belongs to the instance and removes everything.
    """

    def __init__(self, environ: dict[str, str] | None = None, disk_mib: int | None = None) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="cw-", dir="/tmp"))
        self.paths = Paths(self.root / "s", self.root / "r")
        self.hits = self.root / "hits"
        self.sidelog = SideLog(self.root / "sidelog")
        self.disk = SmallDisk(self.paths.state, disk_mib) if disk_mib is not None else None
        config = self.root / "cronward.toml"
        config.touch()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CRONWARD_")}
        self.environ = inherited | {
            "CRONWARD_STATE_DIR": str(self.paths.state),
            "CRONWARD_RUNTIME_DIR": str(self.paths.runtime),
            "CRONWARD_CONFIG": str(config),
            **(environ or {}),
        }
        self.daemons: list[Daemon] = []
        self._client: ControlClient | None = None
        self._scheduler: Daemon | None = None
        self._launcher: Daemon | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # processes

    @property
    def scheduler(self) -> Daemon:
        """The scheduler started last."""
        assert self._scheduler is not None
        return self._scheduler

    @property
    def launcher(self) -> Daemon:
        """The launcher started last."""
        assert self._launcher is not None
        return self._launcher

    def start(self) -> Self:
        """Scheduler and launcher, reconciled."""
        self.start_scheduler()
        self.start_launcher()
        self.wait_reconciled()
        return self

    def start_scheduler(
        self,
        environ: dict[str, str] | None = None,
        arm: dict[str, str] | None = None,
        wait_ready: bool = True,
        deadline_s: float = 20,
    ) -> Daemon:
        """A scheduler; `arm` maps failpoints to actions. Raises NotReady."""
        self._scheduler = self._start("scheduler", ["serve"], environ, arm)
        if wait_ready:
            self._scheduler.wait_ready(deadline_s)
        return self._scheduler

    def start_launcher(
        self,
        environ: dict[str, str] | None = None,
        arm: dict[str, str] | None = None,
        wait_ready: bool = True,
        deadline_s: float = 20,
    ) -> Daemon:
        """A launcher; its failpoints and environment are also those of its executors."""
        self._launcher = self._start("launcher", [], environ, arm)
        if wait_ready:
            self._launcher.wait_ready(deadline_s)
        return self._launcher

    def processes(self) -> list[int]:
        """Pids of everything alive that belongs to this instance: daemons, executors, jobs and their descendants."""
        return belonging_to(self.root)

    def assert_nothing_left(self, deadline_s: float = 10) -> None:
        """Every process of this instance ends by itself within the deadline."""
        wait_until(lambda: not self.processes(), f"no process of {self.root} is left", deadline_s)

    def close(self) -> None:
        """Ends everything and removes the directories. May be called twice."""
        if self._client is not None:
            self._client.close()
            self._client = None
        for daemon in self.daemons:
            daemon.close()
        end_all(self.root)
        if self.disk is not None:
            self.disk.close()
            self.disk = None
        shutil.rmtree(self.root, ignore_errors=True)

    # logs

    def events(self, event: str) -> list[LogLine]:
        """Log lines of one event, of every process that was started, in the order of the processes."""
        return [line for daemon in self.daemons for line in daemon.events(event)]

    def wait_event(self, event: str, count: int = 1, deadline_s: float = 20) -> list[LogLine]:
        """Waits until `count` such lines were logged."""
        wait_until(lambda: len(self.events(event)) >= count, f"{count} × {event} in the logs", deadline_s)
        return self.events(event)

    # requests

    def client(self) -> ControlClient:
        """The instance's own connection to the control socket; it survives restarts of the scheduler."""
        if self._client is None:
            self._client = ControlClient(self.paths.control)
        return self._client

    def add_command_job(
        self,
        argv: list[str],
        schedule: Mapping[str, object] = NEVER,
        payload: Mapping[str, object] | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> JobView:
        """Adds a job that runs `argv`. `payload` and `fields` are further keys of the payload and of cron.add."""
        job = self.job(argv, schedule, payload, fields)
        return self.client().call("cron.add", JobView, job)

    def add_at(self, argv: list[str], at_ms: int, fields: Mapping[str, object] | None = None) -> JobView:
        """Adds a one-shot that is due at `at_ms`."""
        return self.add_command_job(argv, at(at_ms), fields=fields)

    def job(
        self,
        argv: list[str],
        schedule: Mapping[str, object] = NEVER,
        payload: Mapping[str, object] | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """What `add_command_job` sends. The environment names the instance, so that `close` finds the processes."""
        extra = dict(payload or {})
        given = extra.pop("env", {})
        assert isinstance(given, dict)
        env = {"TEST_ROOT": str(self.root)} | given
        return {"schedule": schedule, "payload": {"kind": "command", "argv": argv, "env": env} | extra} | dict(
            fields or {}
        )

    def run_now(self, job: JobView) -> str:
        """Asks for a run of the job and returns the run's id."""
        answer = self.client().call("cron.run", RunAnswer, {"id": job.id})
        assert answer.run_id is not None, answer
        return answer.run_id

    def run_view(self, run_id: str, timeout_s: float = 10) -> RunView:
        return self.client().call("run.get", RunView, {"runId": run_id}, timeout_s)

    def wait_for_run(self, run_id: str, states: Collection[str] = FINISHED, deadline_s: float = 20) -> RunView:
        """Waits until the run is in one of `states` and returns it. A scheduler that is down is waited for, too."""
        seen: list[RunView] = []

        def reached() -> bool:
            try:
                seen.append(self.run_view(run_id, timeout_s=1))
            except TimeoutError:
                return False
            return seen[-1].state in states

        wait_until(reached, f"run {run_id} is {' or '.join(states)}", deadline_s, poll_s=0.02)
        return seen[-1]

    def runs(self, job: JobView | None = None, live: bool = False) -> list[RunView]:
        """All runs, oldest first; with `live` also those that are not finished."""
        which: dict[str, object] = {"scope": "all"} if job is None else {"id": job.id}
        which |= {"sortDir": "asc", "limit": 200, "live": live}
        found: list[RunView] = []
        offset: int | None = 0
        while offset is not None:
            page = self.client().call("cron.runs", RunList, which | {"offset": offset})
            found += page.entries
            offset = page.next_offset
        return found

    def status(self, timeout_s: float = 10) -> ServiceStatus:
        return self.client().call("service.status", ServiceStatus, timeout_s=timeout_s)

    def wait_reconciled(self, deadline_s: float = 20) -> None:
        """Waits until the launcher is reconciled with this scheduler, so that runs can start."""

        def ready() -> bool:
            try:
                return self.status(timeout_s=1).launcher.state == "ready"
            except (TimeoutError, Rejected):
                return False

        wait_until(ready, "the launcher is reconciled", deadline_s, poll_s=0.01)

    def wait_idle(self, deadline_s: float = 60, poll_s: float = 0.02) -> None:
        """Waits until nothing is queued or active."""

        def idle() -> bool:
            status = self.status()
            return status.active == 0 and status.queued == 0

        wait_until(idle, "nothing is queued or active", deadline_s, poll_s)

    def soon_ms(self, delay_ms: int = 300) -> int:
        """An instant shortly from now, for one-shots."""
        return now_ms() + delay_ms

    # details

    def _start(self, name: str, words: list[str], environ: dict[str, str] | None, arm: dict[str, str] | None) -> Daemon:
        armed = failpoints.environment(arm, self.hits) if arm else {}
        argv = [sys.executable, "-m", f"cronward.{name}", *words]
        prefix = self.disk.prefix() if self.disk is not None else []
        log = self.root / f"{len(self.daemons):02}-{name}.log"
        daemon = Daemon(prefix + argv, self.environ | (environ or {}) | armed, log)
        self.daemons.append(daemon)
        return daemon
