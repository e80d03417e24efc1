"""Jobs as clients see them."""

import msgspec

from cronward.protocol import job as jobs
from cronward.protocol.errors import Code, CronwardError
from cronward.protocol.views import AutoDisabledView, JobStateView, JobView
from cronward.schedule.auto_disable import Cause
from cronward.scheduler.rows import JobRow, LiveRow, find_job, live_run
from cronward.scheduler.store import Store


def job_view(job: JobRow, live: LiveRow | None) -> JobView:
    """The read view; what cannot be decoded is left out and said in `flag`."""
    definition, flag = _readable(job)
    state = JobStateView(
        next_run_at_ms=job.next_due_ms,
        running_at_ms=live.activated_ms if live else None,
        queued_at_ms=live.requested_ms if live and live.state == "queued" else None,
        live_run_id=live.run_id if live else None,
        last_run_at_ms=job.last_run_ms,
        last_duration_ms=job.last_duration_ms,
        last_run_status=job.last_status,
        last_reason=job.last_reason,
        last_error=job.last_error,
        consecutive_errors=job.consecutive_errors,
        consecutive_skipped=job.consecutive_skipped,
        consumed_slots=job.consumed_slots,
        schedule_error=flag,
        schedule_error_count=job.schedule_errors,
        due_kind=job.due_kind,
        due_slot_ms=job.due_slot_ms,
        backoff_until_ms=job.backoff_until_ms,
        schedule_activated_at_ms=job.schedule_activated_ms,
        auto_disabled=_auto_disabled(job),
    )
    view = JobView(
        id=job.job_id,
        name=job.name,
        enabled=job.enabled,
        status=_status(job, live, flag),
        config_revision=job.revision,
        created_at_ms=job.created_ms,
        updated_at_ms=job.updated_ms,
        state=state,
        next_run_at_ms=job.next_due_ms,
        last_run_at_ms=job.last_run_ms,
        last_run_status=job.last_status,
        last_run_error=job.last_error,
        flag=flag,
    )
    return _with_definition(view, definition) if definition else view


def load_view(store: Store, job_id: str) -> JobView:
    """The view of a stored job. Raises CronwardError(CRON_JOB_NOT_FOUND)."""
    job = find_job(store, job_id)
    if job is None:
        raise CronwardError(Code.JOB_NOT_FOUND, f"cron job not found: {job_id}", jobId=job_id)
    return job_view(job, live_run(store, job_id))


def _with_definition(view: JobView, definition: jobs.Definition) -> JobView:
    return msgspec.structs.replace(
        view,
        schedule=definition.schedule,
        payload=definition.payload,
        delete_after_run=jobs.deletes_itself(definition) or definition.delete_after_run,
        display_name=definition.display_name,
        declaration_key=definition.declaration_key,
        description=definition.description,
        owner=definition.owner,
        agent_id=definition.agent_id,
        session_key=definition.session_key,
        session_target=definition.session_target,
        wake_mode=definition.wake_mode,
        delivery=definition.delivery,
        retry=definition.retry,
        catch_up=definition.catch_up,
        pacing=definition.pacing,
        tz=definition.schedule.tz if isinstance(definition.schedule, jobs.Cron) else "UTC",
    )


def _readable(job: JobRow) -> tuple[jobs.Definition | None, str | None]:
    try:
        return job.decode(), job.flag
    except msgspec.DecodeError as error:
        return None, job.flag or f"the stored definition cannot be read: {error}"


def _auto_disabled(job: JobRow) -> AutoDisabledView | None:
    if job.auto_disabled is None or job.auto_disabled_ms is None:
        return None
    by_failures = job.auto_disabled == Cause.CONSECUTIVE_FAILURES
    errors = job.consecutive_errors if by_failures else job.schedule_errors
    return AutoDisabledView(job.auto_disabled, job.auto_disabled_ms, errors)


def _status(job: JobRow, live: LiveRow | None, flag: str | None) -> str:
    if live is not None:
        return "running" if live.state == "active" else "queued"
    if flag is not None:
        return "flagged"
    if not job.enabled:
        return "disabled"
    return job.last_status or "idle"
