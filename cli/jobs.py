"""`list`, `get`, `show`, `enable`, `disable`, `rm`."""

import click

from cronward.cli.describe import facts_text, job_table, job_text, next_run
from cronward.cli.session import Session, print_json, with_requests
from cronward.cli.text import paint, safe, terminal_width
from cronward.protocol.client import decode_result
from cronward.protocol.control import JobRef, ListParams, RemoveParams, UpdateParams
from cronward.protocol.ids import new_request_id
from cronward.protocol.views import JobList, JobView, RemoveAnswer

_PAGE = 200
_PAGING_TRIES = 3


@click.command("list")
@click.option("--all", "include_disabled", is_flag=True, help="Disabled jobs too.")
@click.option("--agent", metavar="ID", help="Only jobs of this agent.")
@with_requests
def list_jobs(session: Session, include_disabled: bool, agent: str | None) -> int:
    """List jobs with their schedule, next run, status and last run.

    Times are shown in the job's own zone.

    \b
      cronward list
      cronward list --all --json | jq -r '.jobs[].name'
    """
    jobs = [job for job in all_jobs(session, include_disabled=include_disabled) if agent in (None, job.agent_id)]
    if session.as_json:
        print_json({"jobs": jobs, "total": len(jobs)})
    elif jobs:
        jobs.sort(key=lambda job: (job.state.next_run_at_ms is None, job.state.next_run_at_ms or 0, job.name))
        click.echo(job_table(jobs, session.clock.wall_ms(), terminal_width()))
    else:
        hint = "" if include_disabled else " (--all shows disabled ones)"
        click.echo(f"No jobs{hint}. Create one: cronward add 'every 10m' --name hello -- echo hello", err=True)
    return 0


def all_jobs(session: Session, *, include_disabled: bool) -> list[JobView]:
    """Every page, by name, since running changes no name: only an added or removed job moves a page, and then the
    listing begins again."""
    jobs: dict[str, JobView] = {}
    for _ in range(_PAGING_TRIES):
        jobs = {}
        offset: int | None = 0
        totals = set()
        while offset is not None:
            params = ListParams(include_disabled=include_disabled, limit=_PAGE, offset=offset, sort_by="name")
            page = session.request("cron.list", params, JobList)
            jobs.update((job.id, job) for job in page.jobs)
            totals.add(page.total)
            offset = page.next_offset
        if totals == {len(jobs)}:
            break
    return list(jobs.values())


@click.command()
@click.argument("job")
@with_requests
def get(session: Session, job: str) -> int:
    """Print a job, named by its id or its name, as JSON.

    \b
      cronward get backup
    """
    print_json(session.call("cron.get", JobRef(id=job)))
    return 0


@click.command()
@click.argument("job")
@with_requests
def show(session: Session, job: str) -> int:
    """Describe a job, with its next slots in its own zone.

    \b
      cronward show backup
    """
    now_ms = session.clock.wall_ms()
    session.show(session.call("cron.get", JobRef(id=job)), JobView, lambda view: job_text(view, now_ms))
    return 0


@click.command()
@click.argument("job")
@with_requests
def enable(session: Session, job: str) -> int:
    """Let a job's schedule run again. A job that was off begins with its failure counters at zero.

    \b
      cronward enable backup
    """
    return _switch(session, UpdateParams(id=job, patch={"enabled": True}, request_id=new_request_id()))


@click.command()
@click.argument("job")
@click.option("--cancel", is_flag=True, help="Also end its run, if one is active.")
@with_requests
def disable(session: Session, job: str, cancel: bool) -> int:
    """Stop a job's schedule. What is queued is dropped unless it was forced; an active run goes on unless --cancel is
    given.

    \b
      cronward disable backup
      cronward disable backup --cancel
    """
    return _switch(session, UpdateParams(id=job, patch={"enabled": False}, cancel=cancel, request_id=new_request_id()))


def _switch(session: Session, params: UpdateParams) -> int:
    now_ms = session.clock.wall_ms()
    payload = session.call("cron.update", params)
    session.show(payload, JobView, lambda job: switched_text(job, now_ms, cancelled=params.cancel))
    return 0


def switched_text(job: JobView, now_ms: int, *, cancelled: bool) -> str:
    """What the switch did; `cancelled`: its run was asked to end as well."""
    if job.enabled:
        return f"{safe(job.name)} is {paint('enabled', 'green')}, next run {next_run(job, now_ms)}"
    live = "; its run goes on, `cronward cancel` ends it" if job.state.running_at_ms is not None else ""
    if job.state.queued_at_ms is not None:
        live = "; its forced run stays queued, `cronward cancel` takes it back"
    if cancelled and live:
        live = "; its run is asked to end"
    return f"{safe(job.name)} is {paint('disabled', 'yellow')}{live}; `cronward list --all` still shows it"


@click.command("rm")
@click.argument("job")
@with_requests
def remove(session: Session, job: str) -> int:
    """Remove a job. Its active run is asked to end; its runs stay listed until they are forgotten.

    \b
      cronward rm backup
    """
    payload = session.call("cron.remove", RemoveParams(id=job, request_id=new_request_id()))
    session.show(payload, RemoveAnswer, lambda answer: _removed_text(job, answer))
    return 0 if decode_result(payload, RemoveAnswer).removed else 1


def _removed_text(job: str, answer: RemoveAnswer) -> str:
    return facts_text(
        [
            ("removed" if answer.removed else "not removed", safe(job)),
            ("ending its run", answer.cancelling and safe(answer.cancelling)),
        ]
    )
