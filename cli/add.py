"""`add`: a new job."""

from typing import Unpack

import click

from cronward.cli import scheduleflags
from cronward.cli.describe import facts_text, schedule_text, slots_text, stagger_text
from cronward.cli.jobflags import (
    JobCommand,
    JobFlags,
    command_argv,
    definition_fields,
    job_options,
    payload_fields,
    program_after_dashes,
)
from cronward.cli.session import Session, print_json, with_requests
from cronward.cli.text import safe
from cronward.protocol.client import decode_result
from cronward.protocol.ids import new_request_id
from cronward.protocol.job import At
from cronward.protocol.views import AddResult, JobView
from cronward.schedule.at import parse_at


@click.command(cls=JobCommand)
@click.argument("positional", metavar="[SCHEDULE|NAME] [COMMAND] [-- PROGRAM ARGS...]", nargs=-1)
@job_options
@click.option("--declaration-key", metavar="KEY", help="Create the job, or bring the one with this key up to date.")
@click.option("--disabled", is_flag=True, help="Create it without starting its schedule.")
@with_requests
def add(
    session: Session,
    positional: tuple[str, ...],
    declaration_key: str | None,
    disabled: bool,
    **flags: Unpack[JobFlags],
) -> int:
    """Create a job: a schedule, and a command to run.

    The schedule is the first argument, or --at, --every or --cron (then the first argument is the name). The command
    follows `--`, word for word without a shell, or is the shell text of --command. Everything else is an option.

    \b
      cronward add 'every 10m' --name hello -- /bin/echo hello
      cronward add '*/5 * * * *' -- ./report.sh --short
      cronward add '0 9 * * mon-fri' --tz Europe/Paris --name standup --command 'curl -fsS $URL'
      cronward add --at 20m -- /usr/bin/touch /tmp/once
      cronward add --at 2030-03-01T09:00 --tz Europe/Paris -- ./launch
      cronward add @daily --name backup --secret KEY=file:/etc/backup.key -- /opt/backup

    In a container: docker exec NAME cronward add 'every 1h' -- /app/cleanup
    """
    definition = new_definition(positional, flags, program_after_dashes(), session.clock.wall_ms())
    definition["requestId"] = new_request_id()
    if declaration_key is not None:
        definition["declarationKey"] = declaration_key
    if disabled:
        definition["enabled"] = False
    payload = session.call("cron.add", definition)
    if session.as_json:
        print_json(payload)
    else:
        click.echo(_added_text(payload, declared=declaration_key is not None, now_ms=session.clock.wall_ms()))
    return 0


def new_definition(
    positional: tuple[str, ...], flags: JobFlags, argv: list[str] | None, now_ms: int
) -> dict[str, object]:
    """The JSON of a new job. Raises click.UsageError."""
    if len(positional) > 2:
        raise click.UsageError(
            "Too many arguments. Put the program and its arguments after `--`, or quote the schedule."
        )
    first, command = (*positional, None, None)[:2]
    has_flag = any(flags[kind] is not None for kind in ("at", "every", "cron"))
    if has_flag and first is not None:
        if flags["name"] is not None:
            raise click.UsageError(f"{scheduleflags.CHOOSE_ONE} (Got {first!r} and a flag.)")
        flags["name"] = first
    schedule = scheduleflags.new_schedule(None if has_flag else first, flags, now_ms)
    found = command_argv(flags, command, argv)
    if found is None:
        raise click.UsageError("There is no command. Give it after `--`, or with --command or --command-argv.")
    payload = {"kind": "command", "argv": found} | payload_fields(flags)
    return {"schedule": schedule, "payload": payload} | definition_fields(flags)


def _added_text(payload: bytes, *, declared: bool, now_ms: int) -> str:
    """What was created, in which zone it is read, and when it will run."""
    if declared:
        result = decode_result(payload, AddResult)
        done = "created" if result.created else "updated" if result.updated else "unchanged"
        return added_job_text(done, result.job, now_ms)
    return added_job_text("created", decode_result(payload, JobView), now_ms)


def added_job_text(done: str, job: JobView, now_ms: int) -> str:
    schedule = schedule_text(job.schedule)
    shared = "another job has this name too: commands need the id to know which is meant" if job.name_shared else None
    facts = facts_text(
        [
            (done, safe(job.name)),
            ("id", job.id),
            ("but", shared),
            ("schedule", schedule),
            ("stagger", stagger_text(job.schedule)),
        ]
    )
    slots = slots_text(job, now_ms)
    if not job.enabled and isinstance(job.schedule, At) and parse_at(job.schedule.at) <= now_ms:
        slots = f"Its time is over; give it another one with `cronward edit {job.id} --at TIME --enable`."
    elif not job.enabled:
        slots = f"It is disabled; start it with `cronward enable {job.id}`."
    return f"{facts}\n{slots}" if slots else facts
