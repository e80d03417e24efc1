"""`runs` and `cancel`."""

from typing import cast

import click

from cronward.cli.describe import run_table
from cronward.cli.runref import find_run
from cronward.cli.session import Session, print_json, with_requests
from cronward.cli.text import safe, terminal_width
from cronward.cli.times import local
from cronward.protocol.client import decode_result
from cronward.protocol.control import CancelParams, RunsParams
from cronward.protocol.ids import run_key
from cronward.protocol.views import CancelAnswer, RunList

_CANCEL_TEXTS = {
    "cancelled": "it was still queued, and will not run",
    "requested": "it is being ended; `cronward runs` shows when it is over",
    "abandoned": "its record is closed; if its process still runs, it goes on unwatched",
    "too_late": "it had already ended",
}


@click.command()
@click.argument("job", required=False)
@click.option("--id", "job_id", metavar="JOB", help="The same as the argument.")
@click.option("--run-id", help="Only the run with exactly this id.")
@click.option("--status", type=click.Choice(["all", "ok", "error", "skipped"]), default="all", help="Only these.")
@click.option("--query", default="", metavar="TEXT", help="Only runs that contain this text.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="At most this many.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out this many.")
@click.option("--sort", type=click.Choice(["asc", "desc"]), default="desc", help="Oldest or newest first.")
@with_requests
def runs(
    session: Session,
    job: str | None,
    job_id: str | None,
    run_id: str | None,
    status: str,
    query: str,
    limit: int,
    offset: int,
    sort: str,
) -> int:
    """List runs, of one job or of all: queued, active and finished ones.

    \b
      cronward runs
      cronward runs backup --status error --limit 10
      cronward runs --json | jq -r '.entries[] | [.key, .state] | @tsv'
    """
    params = RunsParams(
        id=job or job_id,
        run_id=run_id,
        status=status,
        query=query,
        limit=limit,
        offset=offset,
        sort_dir=sort,
        live=status == "all",
    )
    payload = session.call("cron.runs", params)
    if session.as_json:
        print_json(_with_times(payload))
        return 0
    page = decode_result(payload, RunList)
    if not page.entries:
        click.echo("No runs.", err=True)
        return 0
    click.echo(run_table(page.entries, session.clock.wall_ms(), terminal_width()))
    if page.has_more:
        click.echo(f"{page.total} runs in all; go on with --offset {page.next_offset}", err=True)
    return 0


def _with_times(payload: bytes) -> dict[str, object]:
    """The answer with its instants also as local time with offset, for people who read JSON."""
    page = decode_result(payload, dict[str, object])
    entries = cast("list[dict[str, object]]", page["entries"])
    for entry in entries:
        for source, target in (("ts", "tsIso"), ("runAtMs", "runAtIso"), ("slotMs", "slotIso")):
            at_ms = entry.get(source)
            if isinstance(at_ms, int):
                entry[target] = local(at_ms).isoformat(timespec="milliseconds")
    return page


@click.command()
@click.argument("run")
@click.option("--abandon", is_flag=True, help="Close its record now, whatever its process does.")
@click.option("--why", default="", metavar="TEXT", help="Kept with the run.")
@with_requests
def cancel(session: Session, run: str, abandon: bool, why: str) -> int:
    """End a run, named by its key (six digits are enough), its id, or its job, whose latest run it is.

    A queued run is dropped. An active one is told to end, then killed; what is recorded is what happened.

    \b
      cronward cancel 4f1d2c
      cronward cancel backup --why 'disk is full'
      cronward cancel 4f1d2c --abandon
    """
    run_id = find_run(session, run).run_id
    payload = session.call("run.cancel", CancelParams(run_id=run_id, abandon=abandon, why=why))
    session.show(payload, CancelAnswer, cancel_text)
    return 0


def cancel_text(answer: CancelAnswer) -> str:
    return f"run {run_key(answer.run_id)[:12]}: {_CANCEL_TEXTS.get(answer.result, safe(answer.result))}"
