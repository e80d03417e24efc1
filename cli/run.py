"""`run`: a job, now."""

import click

from cronward.cli.describe import run_exit, run_state
from cronward.cli.session import Session, pause, print_json, with_requests
from cronward.cli.text import safe
from cronward.cli.times import duration
from cronward.cli.values import Duration
from cronward.protocol.client import Unanswered, decode_result
from cronward.protocol.control import RunParams, RunRef
from cronward.protocol.errors import Code, CronwardError, Unreachable
from cronward.protocol.ids import new_request_id, run_key
from cronward.protocol.views import RunAnswer, RunView

_FIRST_POLL_MS = 25

FINAL_STATES = ("ok", "error", "skipped")


@click.command()
@click.argument("job")
@click.option("--due", is_flag=True, help="Only if it is due, and then in place of its slot.")
@click.option("--wait", is_flag=True, help="Wait until it ended; the exit code is 0 if it succeeded.")
@click.option("--wait-timeout", type=Duration(), default="10m", show_default=True, help="How long to wait at most.")
@click.option("--poll-interval", type=Duration(), default="2s", show_default=True, help="How often to look.")
@with_requests
def run(session: Session, job: str, due: bool, wait: bool, wait_timeout: int, poll_interval: int) -> int:
    """Run a job now, also one that is disabled. Its schedule is not touched.

    Exits with 0 if the run was accepted; with --wait, if it succeeded.

    \b
      cronward run backup
      cronward run backup --wait --wait-timeout 1h && echo done
      cronward run backup --due
    """
    params = RunParams(id=job, mode="due" if due else "force", request_id=new_request_id())
    payload = session.call("cron.run", params)
    answer = decode_result(payload, RunAnswer)
    if answer.run_id is None or not wait:
        session.show(payload, RunAnswer, lambda given: _answer_text(job, given))
        return 0 if answer.ok and (answer.ran or answer.enqueued) else 1
    if not session.as_json:
        click.echo(_answer_text(job, answer))
    return _finish(session, payload, wait_for_run(session, answer.run_id, wait_timeout, poll_interval))


def wait_for_run(session: Session, run_id: str, timeout_ms: int, poll_ms: int) -> RunView:
    """The run once it is final. Looks at once, soon, and then every `poll_ms`; a scheduler that is away meanwhile is
    waited for. Raises TIMEOUT."""
    deadline = session.clock.mono_ms() + timeout_ms
    interval_ms = min(_FIRST_POLL_MS, poll_ms)
    while True:
        try:
            view = session.request("run.get", RunRef(run_id=run_id), RunView)
            if view.state in FINAL_STATES:
                return view
        except (Unreachable, Unanswered) as error:
            if not session.as_json:
                click.echo(f"cronward: still waiting: {safe(error.message)}", err=True)
        left_ms = deadline - session.clock.mono_ms()
        if left_ms <= 0:
            raise CronwardError(Code.TIMEOUT, f"timed out waiting for run {run_key(run_id)[:12]}", runId=run_id)
        pause(min(interval_ms, left_ms))
        interval_ms = min(2 * interval_ms, poll_ms)


def _finish(session: Session, payload: bytes, view: RunView) -> int:
    if session.as_json:
        first = decode_result(payload, dict[str, object])
        print_json(
            first | {"completed": True, "status": view.status, "completionStatus": view.completion_status, "run": view}
        )
    else:
        click.echo(_end_text(view))
    return 0 if view.completion_status == "succeeded" else 1


def _answer_text(job: str, answer: RunAnswer) -> str:
    if answer.run_id is None:
        return f"not run: {answer.reason or 'no reason given'}"
    return f"run {run_key(answer.run_id)[:12]} of {safe(job)} is requested"


def _end_text(view: RunView) -> str:
    exit_text = run_exit(view)
    ended = [
        run_state(view),
        f"exit {exit_text}" if exit_text else "",
        "" if view.duration_ms is None else f"after {duration(view.duration_ms)}",
        safe(view.error or ""),
    ]
    return f"run {view.key[:12]} ended: " + ", ".join(part for part in ended if part)
