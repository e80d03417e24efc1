"""A guided look at Cronward (`make demo`): a service of its own in a scratch directory, some jobs, and their runs live.

    python -m cronward.cli.demo [--seconds N]

Stops with Ctrl-C, or after N seconds, and leaves nothing behind.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from cronward.cli.session import pause
from cronward.cli.text import paint, safe
from cronward.cli.watch import run_of, text_line
from cronward.protocol import exits
from cronward.protocol.client import ControlClient
from cronward.protocol.clock import Clock, SystemClock
from cronward.protocol.control import DrainParams, Event
from cronward.protocol.errors import CronwardError
from cronward.protocol.ids import new_request_id
from cronward.protocol.paths import Paths, resolve
from cronward.protocol.status_client import StatusClient, Update
from cronward.protocol.views import DrainAnswer, JobView, ServiceStatus

START_TIMEOUT_MS = 20_000
STOP_TIMEOUT_S = 40
LOOK_MS = 500

JOBS: dict[str, tuple[dict[str, object], list[str], str]] = {
    "tick": (
        {"kind": "cron", "expr": "*/2 * * * * *"},
        ["date", "+%T tick"],
        "every two seconds, by a cron expression",
    ),
    "backup": ({"kind": "every", "everyMs": 9_000}, ["sh", "-c", "sleep 4; echo 1204 files"], "takes four seconds"),
    "flaky": ({"kind": "every", "everyMs": 7_000}, ["sh", "-c", "echo no route >&2; exit 3"], "fails each time"),
    "report": (
        {"kind": "every", "everyMs": 11_000},
        ["sh", "-c", "for n in 1 2 3; do echo part $n; done"],
        "writes some output",
    ),
    "nightly": (
        {"kind": "cron", "expr": "30 2 * * *", "tz": "Europe/Paris"},
        ["echo", "good night"],
        "each night at 02:30 in Paris",
    ),
}


class Demo:
    """One scratch installation, and the `cronward up` that runs it."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._clock = clock
        self.settings = {
            "CRONWARD_STATE_DIR": str(directory / "state"),
            "CRONWARD_RUNTIME_DIR": str(directory / "run"),
            "CRONWARD_CONFIG": str(directory / "cronward.toml"),
        }
        # Settings of a real installation on this machine are not the demo's.
        environ = {key: value for key, value in os.environ.items() if not key.startswith("CRONWARD_")} | self.settings
        self.paths: Paths = resolve(environ)
        (directory / "cronward.toml").touch()
        self._log_path = directory / "up.log"
        with self._log_path.open("wb") as log:
            self._service = subprocess.Popen(
                [sys.executable, "-c", "import sys; from cronward.cli.main import main; sys.exit(main(['up']))"],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def create_jobs(self) -> None:
        """Adds JOBS as soon as the scheduler answers. Raises RuntimeError if it never does."""
        self._await_socket()
        with ControlClient(self.paths.control, self._clock) as client:
            for name, (schedule, argv, about) in JOBS.items():
                job: dict[str, object] = {"name": name, "description": about, "schedule": schedule}
                job["payload"] = {"kind": "command", "argv": argv}
                client.request("cron.add", job | {"requestId": new_request_id()}, JobView)

    def _await_socket(self) -> None:
        deadline = self._clock.mono_ms() + START_TIMEOUT_MS
        while not self.paths.control.exists():
            if self._service.poll() is not None or self._clock.mono_ms() > deadline:
                raise RuntimeError(f"the service did not start:\n{self.log_tail()}")
            pause(20)

    def scheduler_pid(self) -> int:
        with ControlClient(self.paths.query, self._clock) as client:
            return client.request("service.status", {}, ServiceStatus).pid

    def show(self, seconds: float | None) -> None:
        """Prints what happens until the time is over, or for ever. Raises RuntimeError if the service ends."""
        end_ms = None if seconds is None else self._clock.mono_ms() + round(seconds * 1000)
        with StatusClient(self.paths, self._clock) as status:
            while end_ms is None or self._clock.mono_ms() < end_ms:
                if self._service.poll() is not None:
                    raise RuntimeError(f"the service ended:\n{self.log_tail()}")
                update = status.wait(LOOK_MS)
                if update is not None:
                    _print_update(update, self._clock.wall_ms())

    def stop(self) -> None:
        """Ends what runs, then the service. Raises RuntimeError if it does not end."""
        if self._service.poll() is not None:
            return
        try:
            with ControlClient(self.paths.control, self._clock) as client:
                client.request("service.drain", DrainParams(kill=True), DrainAnswer)
        except CronwardError as error:
            print(f"the runs could not be ended: {error.message}", file=sys.stderr)
        self._service.send_signal(signal.SIGTERM)
        try:
            self._service.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._service.send_signal(signal.SIGTERM)
            self._service.wait(STOP_TIMEOUT_S)

    def log_tail(self) -> str:
        return self._log_path.read_text(encoding="utf-8", errors="replace")[-2000:]


def _print_update(update: Update, now_ms: int) -> None:
    """A line, and below the end of a run what it wrote."""
    run = run_of(update) if isinstance(update, Event) else None
    if run is not None and run.state == "queued":
        return
    line = text_line(update, now_ms)
    if line is None:
        return
    print(line, flush=True)
    for text in (run.summary or "").splitlines() if run is not None else []:
        print(paint(f"              | {safe(text)}", "dim"), flush=True)


def guide(settings: dict[str, str], scheduler_pid: int) -> str:
    """What is seen, and what to type in another terminal."""
    program = Path(sys.executable).with_name("cronward")
    name = str(program) if program.exists() else "cronward"
    exports = "\n".join(f"    export {key}={shlex.quote(value)}" for key, value in settings.items())
    jobs = "\n".join(f"    {job:<8} {about}" for job, (_, _, about) in JOBS.items())
    return f"""\
Cronward runs here, in a scratch directory that is removed at the end. Its jobs:

{jobs}

In another terminal:

{exports}
    alias cronward={shlex.quote(name)}
    cronward list                        when does everything run next?
    cronward logs report                 what did it write?
    cronward runs flaky                  every failure, with its exit code
    cronward run flaky --wait; echo $?   now, and wait for it
    cronward cancel backup               end it while it runs
    cronward add 'every 5s' --name mine -- date
    kill -9 {scheduler_pid:<28} the scheduler: it comes back, no run is lost or repeated

Below, each start and each end of a run, and what it wrote. Ctrl-C ends everything.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cronward.cli.demo", description=__doc__)
    parser.add_argument("--seconds", type=float, help="end by itself after this long")
    seconds: float | None = parser.parse_args().seconds
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = Path(tempfile.mkdtemp(prefix="cronward-demo-"))
    demo = Demo(directory, SystemClock())
    try:
        demo.create_jobs()
        print(guide(demo.settings, demo.scheduler_pid()), flush=True)
        demo.show(seconds)
    except KeyboardInterrupt:
        print()
    except (RuntimeError, CronwardError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return exits.ERROR
    finally:
        print("Stopping ...", flush=True)
        demo.stop()
        shutil.rmtree(directory)
    print("Nothing is left behind.")
    return exits.OK


if __name__ == "__main__":
    sys.exit(main())
