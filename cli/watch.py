"""`watch`: events as they happen."""

import sys

import click
import msgspec

from cronward.cli.describe import run_exit, run_state, run_took
from cronward.cli.session import Session, with_session
from cronward.cli.text import STATUS_COLOURS, paint, safe
from cronward.cli.times import local, zone_mark
from cronward.protocol.client import decode_result
from cronward.protocol.control import Event
from cronward.protocol.status_client import Silence, Snapshot, StatusClient, Update
from cronward.protocol.views import JobView, NoticeView, RunView, ServiceStatus

_A_WHILE_MS = 60_000


class JobChange(msgspec.Struct, frozen=True, rename="camel"):
    """What an event says of a job: added, updated or removed; a removed one has no view."""

    action: str
    job_id: str
    job: JobView | None = None


@click.command()
@with_session
def watch(session: Session) -> int:
    """Follow what happens: runs, jobs, notices, the service. Ends with Ctrl-C.

    After a lost event or a restart of the scheduler it begins anew with the present state by itself. With --json
    each line is one object: a snapshot, an event, or {"type":"silence"}.

    \b
      cronward watch
      cronward watch --json | jq -c 'select(.payload.runId) | .payload'
    """
    with StatusClient(session.paths, session.clock) as client:
        while True:
            update = client.wait(_A_WHILE_MS)
            if update is None:
                continue
            line = json_line(update) if session.as_json else text_line(update, session.clock.wall_ms())
            if line is not None:
                click.echo(line)
                sys.stdout.flush()


def json_line(update: Update) -> bytes:
    """One update as a line of JSON."""
    match update:
        case Snapshot(view=view):
            return msgspec.json.encode({"type": "snapshot", "payload": view})
        case Silence():
            return b'{"type":"silence"}'
        case Event():
            return msgspec.json.encode(update)


def text_line(update: Update, now_ms: int) -> str | None:
    """One update for people; None for what only machines need."""
    text = _text(update, now_ms)
    if text is None:
        return None
    when = local(now_ms)
    return f"{when:%H:%M:%S} {zone_mark(when)}  {text}"


def _text(update: Update, now_ms: int) -> str | None:
    match update:
        case Snapshot(view=view):
            return f"{paint('now', 'bold')}: {_service_text(view.service)}"
        case Silence():
            return paint("the scheduler is silent", "yellow")
        case Event(event="cron"):
            run = run_of(update)
            return _job_line(update) if run is None else run_line(run, now_ms)
        case Event(event="notice"):
            return f"{paint('notice', 'yellow')}: {safe(decode_result(bytes(update.payload), NoticeView).text)}"
        case Event(event="service"):
            return _service_text(decode_result(bytes(update.payload), ServiceStatus))
        case Event():
            return None


def run_of(event: Event) -> RunView | None:
    """The run that an event speaks of; None if it is about a job, or about neither."""
    if event.event != "cron" or "runId" not in decode_result(bytes(event.payload), dict[str, object]):
        return None
    return decode_result(bytes(event.payload), RunView)


def _job_line(event: Event) -> str:
    change = decode_result(bytes(event.payload), JobChange)
    return f"job {safe(change.job.name if change.job else change.job_id)} {safe(change.action)}"


def _service_text(service: ServiceStatus) -> str:
    counts = f"{service.active} active, {service.queued} waiting, {service.jobs_enabled} jobs enabled"
    return f"service {service.mode}, launcher {service.launcher.state}, {counts}"


def run_line(run: RunView, now_ms: int) -> str:
    """One change of a run: `backup 4f1d2c8a90b1 error/exit_code, exit 3, after 2.1 s`."""
    state = paint(run_state(run), STATUS_COLOURS.get(run.state, ""))
    exit_text, took = run_exit(run), run_took(run, now_ms)
    rest = [f"exit {exit_text}" if exit_text else "", f"after {took}" if took else "", _why(run)]
    return ", ".join([f"{safe(run.job_name)} {run.key[:12]} {state}", *(part for part in rest if part)])


def _why(run: RunView) -> str:
    """The error, unless the exit code has said it already."""
    return safe(run.error or "") if run.exit_code is None and run.signal is None else ""
