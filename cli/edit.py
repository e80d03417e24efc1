"""`edit`: change a job."""

from typing import Unpack

import click
import msgspec

from cronward.cli import scheduleflags
from cronward.cli.add import added_job_text
from cronward.cli.jobflags import (
    JobCommand,
    JobFlags,
    command_argv,
    definition_fields,
    job_options,
    payload_fields,
    program_after_dashes,
)
from cronward.cli.session import Session, with_requests
from cronward.protocol.control import JobRef, UpdateParams
from cronward.protocol.ids import new_request_id
from cronward.protocol.views import JobView


@click.command(cls=JobCommand)
@click.argument("job")
@job_options
@click.option("--enable/--disable", "enabled", default=None, help="Start or stop its schedule.")
@click.option("--clear-display-name", is_flag=True, help="Take its title away.")
@click.option("--clear-agent", is_flag=True, help="Let it belong to no agent.")
@click.option("--clear-session-key", is_flag=True, help="Let it belong to no session.")
@click.option("--clear-pacing", is_flag=True, help="Take its pacing away.")
@click.option("--clear-retry", is_flag=True, help="Handle its failures as configured for all jobs.")
@click.option("--clear-catch-up", is_flag=True, help="Handle its missed slots as configured for all jobs.")
@click.option("--reschedule", is_flag=True, help="Compute its next run anew, from now.")
@with_requests
def edit(
    session: Session,
    job: str,
    enabled: bool | None,
    clear_display_name: bool,
    clear_agent: bool,
    clear_session_key: bool,
    clear_pacing: bool,
    clear_retry: bool,
    clear_catch_up: bool,
    reschedule: bool,
    **flags: Unpack[JobFlags],
) -> int:
    """Change a job; what no flag names stays as it is. An active run keeps what it started with.

    The change is refused if somebody else changed the job in the meantime.

    \b
      cronward edit backup --cron '0 4 * * *'
      cronward edit backup --tz Europe/Paris --timeout-seconds 1800
      cronward edit backup --command-env LEVEL=9 -- /opt/backup --full
      cronward edit backup --reschedule
    """
    current = session.request("cron.get", JobRef(id=job), JobView)
    patch = changes(current, flags, program_after_dashes(), session.clock.wall_ms())
    if enabled is not None:
        patch["enabled"] = enabled
    cleared = {
        "displayName": clear_display_name,
        "agentId": clear_agent,
        "sessionKey": clear_session_key,
        "pacing": clear_pacing,
        "retry": clear_retry,
        "catchUp": clear_catch_up,
    }
    for field, clear in cleared.items():
        if clear and field in patch:
            raise click.UsageError(f"{field} is given and cleared. Choose one.")
        if clear:
            patch[field] = None
    if not patch and not reschedule:
        raise click.UsageError("Nothing to change. `cronward edit --help` lists what can be.")
    params = UpdateParams(
        id=current.id,
        patch=patch,
        expected_config_revision=current.config_revision,
        reschedule=reschedule,
        request_id=new_request_id(),
    )
    payload = session.call("cron.update", params)
    now_ms = session.clock.wall_ms()
    session.show(payload, JobView, lambda view: added_job_text("changed", view, now_ms))
    return 0


def changes(current: JobView, flags: JobFlags, argv: list[str] | None, now_ms: int) -> dict[str, object]:
    """The patch that the flags ask for. Variables and secrets are added to those that the job has."""
    patch = definition_fields(flags)
    schedule = scheduleflags.changed_schedule(current.schedule, flags, now_ms)
    if schedule:
        patch["schedule"] = schedule
    payload = payload_fields(flags)
    before: dict[str, object] = msgspec.to_builtins(current.payload) if current.payload else {}
    for field in ("env", "secrets"):
        added, had = payload.get(field), before.get(field)
        if isinstance(added, dict) and isinstance(had, dict):
            payload[field] = had | added
    found = command_argv(flags, None, argv)
    if found is not None:
        payload["argv"] = found
    if payload:
        patch["payload"] = {"kind": "command", **payload}
    return patch
