"""An installation of Cronward as its clients see it, whoever started its processes."""

import contextlib
import os
import signal
from collections.abc import Collection, Mapping
from pathlib import Path

from cronward.protocol.paths import Paths
from cronward.protocol.views import JobView, RunAnswer, RunList, RunView, ServiceStatus
from tests.support.control import ControlClient, Rejected
from tests.support.processes import belonging_to, end_all
from tests.support.sidelog import SideLog
from tests.support.waiting import now_ms, wait_until

FINISHED = ("ok", "error", "skipped")
NEVER: dict[str, object] = {"kind": "every", "everyMs": 365 * 86_400_000}
"""A schedule that is not due while a test lasts."""


def at(at_ms: int) -> dict[str, object]:
    """The schedule of a one-shot."""
    return {"kind": "at", "at": str(at_ms)}


class Installation:
    """One state and one runtime directory below `root`, a side log, and requests to the scheduler."""

    def __init__(self, root: Path, paths: Paths) -> None:
        self.root = root
        self.paths = paths
        self.sidelog = SideLog(root / "sidelog")
        self._client: ControlClient | None = None

    def processes(self) -> list[int]:
        """Pids of everything alive that belongs to it: daemons, executors, jobs and their descendants."""
        return belonging_to(self.root)

    def kill(self, pid: int) -> None:
        """SIGKILL to one of its processes, unless it has just ended by itself."""
        if pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def assert_nothing_left(self, deadline_s: float = 10) -> None:
        """Every process of it ends by itself within the deadline."""
        wait_until(lambda: not self.processes(), f"no process of {self.root} is left", deadline_s)

    def close(self) -> None:
        """Ends every process that belongs to it. May be called twice."""
        if self._client is not None:
            self._client.close()
            self._client = None
        end_all(self.root)

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

    def start_job(self, stay_ms: int) -> str:
        """Runs a job that writes `job:start` and `job:end`; returns the run's id once it has started."""
        run_id = self.run_now(self.add_command_job(self.sidelog.command("job", stay_ms)))
        wait_until(lambda: self.sidelog.count("job:start") == 1, "the job has started")
        return run_id
