"""`up`: the whole service in the foreground."""

import enum
import os
import signal

import click

from cronward.cli.console import Console
from cronward.cli.daemon import Daemon, Event, State
from cronward.cli.processes import LAUNCHER, SCHEDULER, holder, serve_command
from cronward.cli.session import Session, with_session
from cronward.cli.supervisor import Exited, Happening, Ready, Signalled, Supervisor
from cronward.cli.text import safe
from cronward.cli.times import duration
from cronward.protocol import exits
from cronward.protocol.client import decode_result
from cronward.protocol.control import DrainParams
from cronward.protocol.errors import CronwardError
from cronward.protocol.notify import Notifier
from cronward.protocol.paths import Paths
from cronward.protocol.views import DrainAnswer, StatusSnapshot

_A_WHILE_MS = 60_000
_DRAIN_LOOK_MS = 250
_DRAIN_ASK_MS = 1_000
_NAMED_MAX = 5


@click.command()
@with_session
def up(session: Session) -> int:
    """Run scheduler and launcher in the foreground, and start them again when they end.

    Ctrl-C or SIGTERM starts nothing more, waits until nothing runs, and stops; a second one does not wait: what runs
    goes on, and is adopted by the next start. SIGHUP makes the configuration be read again. If this process is
    killed, the service goes on without it.

    \b
      cronward up
      cronward --state ./state --runtime ./run up
      docker run ... cronward up --json
    """
    console = Console(session.clock, as_json=session.as_json)
    commands = {name: serve_command(name, session.options) for name in (SCHEDULER, LAUNCHER)}
    try:
        return Up(session, console, commands).run()
    finally:
        console.close()


class Phase(enum.StrEnum):
    RUNNING = "running"
    DRAINING = "draining"
    STOPPING = "stopping"


class Up:
    """The supervisor's decisions: who is started when, and how everything stops."""

    def __init__(self, session: Session, console: Console, commands: dict[str, list[str]]) -> None:
        self._session = session
        self._console = console
        self._notifier = Notifier(os.environ)
        self._scheduler, self._launcher = (
            Daemon(name, commands[name], session.clock, os.environ) for name in (SCHEDULER, LAUNCHER)
        )
        self._daemons = [self._launcher, self._scheduler]
        self._supervisor = Supervisor(self._daemons, session.clock, lambda _, line: console.pass_on(line))
        self._phase = Phase.RUNNING
        self._was_ready = False
        self._exit_code = exits.OK
        self._told_waiting = ""

    def run(self) -> int:
        """Returns the exit code once both daemons are stopped."""
        self._scheduler.on(Event.START)
        while any(daemon.state is not State.STOPPED for daemon in self._daemons):
            for happening in self._supervisor.wait(_DRAIN_LOOK_MS if self._phase is Phase.DRAINING else _A_WHILE_MS):
                self._on(happening)
            self._advance()
        self._supervisor.last_words()
        self._console.say("up.stopped", "stopped")
        return self._exit_code

    def _on(self, happening: Happening) -> None:
        match happening:
            case Signalled(number=signal.SIGHUP):
                for daemon in self._daemons:
                    daemon.send(signal.SIGHUP)
            case Signalled(number=signal.SIGINT | signal.SIGTERM):
                self._on_stop_signal()
            case Signalled():
                pass
            case Ready():
                if all(daemon.state is State.READY for daemon in self._daemons):
                    self._say_ready()
            case Exited(daemon=daemon):
                self._on_exit(daemon)

    def _advance(self) -> None:
        """What follows from the states as they are."""
        match self._phase:
            case Phase.RUNNING:
                if self._scheduler.state is State.READY:
                    self._launcher.on(Event.START)
            case Phase.DRAINING:
                self._drain()
            case Phase.STOPPING:
                self._launcher.on(Event.STOP)
                if self._launcher.state is State.STOPPED or self._scheduler.state is State.WAITING:
                    self._scheduler.on(Event.STOP)

    def _say_ready(self) -> None:
        self._console.say("up.ready", f"ready; control socket {self._session.paths.control}")
        if not self._was_ready:
            self._notifier.ready("scheduler and launcher are ready")
        self._was_ready = True

    def _on_exit(self, daemon: Daemon) -> None:
        code = daemon.exit_code
        if daemon.state is State.STOPPED or code is None:
            return
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        refused = code == exits.ALREADY_RUNNING and not self._was_ready
        if code in exits.PERMANENT or refused:
            if refused:
                self._console.say("up.held", _holders_text(self._session.paths), level="error")
            self._console.say("up.failed", f"the {daemon.name} cannot run ({how}); stopping", level="error")
            self._exit_code = code
            self._begin_stop()
        elif daemon.deadline_ms is not None:
            message = f"the {daemon.name} ended with {how}; starting it again in {duration(daemon.pause_ms)}"
            self._console.say("up.restart", message, level="warning")

    def _on_stop_signal(self) -> None:
        if self._phase is Phase.RUNNING and self._scheduler.state is State.READY:
            self._console.say("up.draining", "stopping once nothing runs; a second signal does not wait for the runs")
            self._notifier.send("STOPPING=1", "STATUS=waiting for runs")
            self._phase = Phase.DRAINING
        elif self._phase is not Phase.STOPPING:
            if self._phase is Phase.DRAINING:
                self._console.say("up.not_waiting", "not waiting: what runs goes on, and the next start adopts it")
            self._begin_stop()

    def _begin_stop(self) -> None:
        self._notifier.send("STOPPING=1")
        self._phase = Phase.STOPPING
        self._advance()

    def _drain(self) -> None:
        """Asks for nothing new to start until nothing is active. Without a scheduler there is nobody to wait with."""
        if self._scheduler.state is not State.READY:
            self._console.say("up.not_waiting", "the scheduler is gone: what runs goes on, the next start adopts it")
            self._begin_stop()
            return
        try:
            payload = self._session.call("service.drain", DrainParams(), timeout_ms=_DRAIN_ASK_MS)
            if decode_result(payload, DrainAnswer).active == 0:
                self._begin_stop()
                return
            snapshot = decode_result(self._session.call("status.snapshot", timeout_ms=_DRAIN_ASK_MS), StatusSnapshot)
            self._tell_waiting(waiting_text(snapshot))
        except CronwardError as error:
            self._tell_waiting(f"the scheduler does not answer: {error.message}")

    def _tell_waiting(self, text: str) -> None:
        if text != self._told_waiting:
            self._console.say("up.waiting", text)
            self._told_waiting = text


def waiting_text(snapshot: StatusSnapshot) -> str:
    """`waiting for 2 runs: backup 4f1d2c8a90b1, report 8a90b14f1d2c`."""
    active = [run for run in snapshot.live if run.state == "active"]
    named = [f"{safe(run.job_name)} {run.key[:12]}" for run in active[:_NAMED_MAX]]
    more = f" and {len(active) - _NAMED_MAX} more" if len(active) > _NAMED_MAX else ""
    return f"waiting for {len(active)} run{'s' if len(active) != 1 else ''}: {', '.join(named)}{more}"


def _holders_text(paths: Paths) -> str:
    """Who runs the service already, by the locks."""
    locks = (paths.scheduler_lock, paths.launcher_lock, paths.runtime_lock)
    held = {lock: identity.pid for lock in locks if (identity := holder(lock))}
    if not held:
        return f"another process uses {paths.state} or {paths.runtime}"
    names = "; ".join(f"process {pid} holds {lock}" for lock, pid in held.items())
    pids = " ".join(str(pid) for pid in sorted(set(held.values())))
    return f"the service is already running: {names}. `kill {pids}` stops it; its runs go on"
