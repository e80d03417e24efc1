"""`status`, `pause`, `resume`, `drain`: the service as a whole."""

import os

import click

from cronward.cli.describe import facts_text
from cronward.cli.main import Options
from cronward.cli.session import NO_PARAMS, Session, pause, print_json, with_requests, with_session
from cronward.cli.text import paint, safe
from cronward.cli.times import duration, relative, short_stamp
from cronward.cli.values import Duration
from cronward.protocol.client import decode_result
from cronward.protocol.control import DrainParams
from cronward.protocol.errors import Code, CronwardError
from cronward.protocol.views import DrainAnswer, LauncherView, ServiceStatus

_LOOK_MS = 250
_MODE_COLOURS = {"running": "green", "paused": "yellow", "draining": "yellow", "stopping": "yellow"}


@click.command()
@with_requests
def status(session: Session) -> int:
    """Show what the service does, and which directories it uses.

    \b
      cronward status
      cronward status --json | jq .active
    """
    payload = session.call("service.status")
    here = client_directories(session)
    if session.as_json:
        print_json(decode_result(payload, dict[str, object]) | {"client": here})
    else:
        click.echo(status_text(decode_result(payload, ServiceStatus), here))
    return 0


def client_directories(session: Session) -> dict[str, str]:
    """The directories that this command uses, and what named them."""
    options: Options = session.options
    return {
        "stateDir": str(session.paths.state),
        "stateDirSource": _source(options.state, "--state", "CRONWARD_STATE_DIR", "STATE_DIRECTORY"),
        "runtimeDir": str(session.paths.runtime),
        "runtimeDirSource": _source(options.runtime, "--runtime", "CRONWARD_RUNTIME_DIR", "RUNTIME_DIRECTORY"),
    }


def _source(flag_value: str | None, flag: str, *variables: str) -> str:
    if flag_value:
        return flag
    return next((variable for variable in variables if os.environ.get(variable)), "default")


def status_text(service: ServiceStatus, here: dict[str, str]) -> str:
    """The service in words; trouble first."""
    now = service.now_ms
    mode = paint(service.mode, _MODE_COLOURS.get(service.mode, ""))
    held = ","
    if service.held_by is not None and service.held_at_ms is not None:
        held = f" by {safe(service.held_by)} since {short_stamp(service.held_at_ms, now)};"
    trouble = [
        ("storage", service.storage_error and paint(safe(service.storage_error), "red")),
        ("configuration", service.config_error and paint(safe(service.config_error), "red")),
        ("cannot start", service.launcher.cannot_start and paint(safe(service.launcher.cannot_start), "red")),
        ("flagged jobs", str(service.jobs_flagged) if service.jobs_flagged else None),
        ("far ahead", _far_ahead_text(service.deadlines_far_ahead)),
    ]
    waiting = f", {service.queued} waiting" if service.queued else ""
    facts = [
        ("service", f"{mode}{held} up since {short_stamp(service.started_at_ms, now)}"),
        *trouble,
        ("launcher", launcher_text(service.launcher)),
        ("runs", f"{service.active} of {service.capacity} active{waiting}"),
        ("jobs", f"{service.jobs_enabled} enabled of {service.jobs}"),
        ("next", _next_text(service.next_wake_at_ms, now)),
        ("zone", f"{service.default_tz} for jobs without one"),
        ("state", _directory(service.state_dir, here["stateDir"], here["stateDirSource"])),
        ("runtime", _directory(service.runtime_dir, here["runtimeDir"], here["runtimeDirSource"])),
        ("config", f"{safe(service.config_path)} (version {service.config_version})"),
        ("release", f"{service.version}, scheduler process {service.pid}"),
    ]
    notices = [f"notice  {relative(n.at_ms, now)}: {safe(n.text)}" for n in service.notices]
    return "\n".join([facts_text(facts), *notices])


def _far_ahead_text(jobs: int) -> str | None:
    """The clock was set back: jobs wait for times that their schedules had under the old one."""
    if not jobs:
        return None
    return f"{count(jobs, 'job')} by a clock that was set back; see `cronward doctor`, `cronward edit JOB --reschedule`"


def launcher_text(launcher: LauncherView) -> str:
    if launcher.state != "ready":
        return paint(launcher.state, "yellow")
    pool = f"{launcher.ready} executors ready, {launcher.busy} busy"
    adopted = f", {launcher.adopted} adopted" if launcher.adopted else ""
    gateway = f", gateway {safe(launcher.gateway)}" if launcher.gateway else ""
    return f"{paint('ready', 'green')}, process {launcher.pid}, {pool}{adopted}{gateway}"


def _next_text(at_ms: int | None, now_ms: int) -> str:
    return "nothing" if at_ms is None else f"{short_stamp(at_ms, now_ms)}, {relative(at_ms, now_ms)}"


def _directory(used: str, mine: str, source: str) -> str:
    """What the scheduler uses, and what named it here. They differ inside containers."""
    return f"{safe(used)} ({source})" if used == mine else f"{safe(used)} (here {safe(mine)}, {source})"


@click.command("pause")
@with_requests
def pause_service(session: Session) -> int:
    """Start nothing more until `cronward resume`. What runs goes on. Slots that come meanwhile are missed: at `resume`
    each job's catch-up says which of them are run.

    \b
      cronward pause
    """
    return _order(session, "service.pause", "paused; `cronward resume` starts runs again")


@click.command()
@with_requests
def resume(session: Session) -> int:
    """Start runs again after `pause` or `drain`. What waited is started first, then missed slots are caught up.

    \b
      cronward resume
    """
    return _order(session, "service.resume", "running")


def _order(session: Session, method: str, text: str) -> int:
    payload = session.call(method, NO_PARAMS)
    if session.as_json:
        print_json(payload)
    else:
        click.echo(text)
    return 0


@click.command()
@click.option("--timeout", "wait_ms", type=Duration(), help="Give up waiting after this long; 0 does not wait.")
@click.option("--kill", is_flag=True, help="Ask everything that runs to end.")
@with_session
def drain(session: Session, wait_ms: int | None, kill: bool) -> int:
    """Start nothing more and wait until nothing runs. `cronward resume` undoes it.

    \b
      cronward drain
      cronward drain --timeout 5m || cronward drain --kill
    """
    began = session.clock.mono_ms()
    answer = session.request("service.drain", DrainParams(kill=kill), DrainAnswer)
    told = -1
    while answer.active and (wait_ms is None or session.clock.mono_ms() - began < wait_ms):
        if answer.active != told and not session.as_json:
            click.echo(f"waiting for {count(answer.active, 'run')}", err=True)
            told = answer.active
        pause(_LOOK_MS)
        answer = session.request("service.drain", DrainParams(), DrainAnswer)
    if answer.active and wait_ms:
        message = f"{count(answer.active, 'run')} still active after {duration(wait_ms)}; nothing more is started"
        raise CronwardError(Code.TIMEOUT, message, active=answer.active)
    if session.as_json:
        print_json(answer)
    else:
        click.echo(f"drained: {answer.active} active, {answer.queued} waiting for `cronward resume`")
    return 0


def count(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
