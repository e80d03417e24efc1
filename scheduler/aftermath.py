"""What a terminal run does to its job: counters, last result, and the end of one-shots."""

import msgspec

from cronward.protocol import job as jobs
from cronward.protocol.outcome import Reason, Status
from cronward.scheduler import changes, job_views
from cronward.scheduler.effects import JobEvent
from cronward.scheduler.rows import JobRow
from cronward.scheduler.runstate import NOT_THE_JOBS_FAULT
from cronward.scheduler.world import Turn


class Finished(msgspec.Struct, frozen=True):
    """A run that has ended. `kind` is scheduled, event, or the mode of a manual run."""

    kind: str
    status: Status
    reason: Reason | None
    message: str
    started_ms: int
    duration_ms: int


class Aftermath(msgspec.Struct, frozen=True):
    """The decision. A one-shot that is used up is deleted or disabled."""

    consecutive_errors: int
    consecutive_skipped: int
    delete: bool = False
    disable: bool = False


def decide(job: JobRow, definition: jobs.Definition | None, ended: Finished) -> Aftermath:
    """Pure. A definition that cannot be read (None) only gets its counters."""
    errors, skipped = _counters(job, ended)
    used_up = (
        definition is not None
        and isinstance(definition.schedule, jobs.At)
        and definition.enabled
        and job.next_due_ms is None  # a later time was set meanwhile, or a forced run left the slot in the future
    )
    if not used_up or definition is None:
        return Aftermath(errors, skipped)
    delete = ended.status is Status.OK and jobs.deletes_itself(definition)
    return Aftermath(errors, skipped, delete=delete, disable=not delete)


def _counters(job: JobRow, ended: Finished) -> tuple[int, int]:
    if ended.reason in NOT_THE_JOBS_FAULT:
        return job.consecutive_errors, job.consecutive_skipped
    match ended.status:
        case Status.ERROR:
            return job.consecutive_errors + 1, 0
        case Status.SKIPPED:
            return 0, job.consecutive_skipped + 1
        case Status.OK:
            return 0, 0


def apply(turn: Turn, job: JobRow, ended: Finished) -> None:
    """Writes the decision."""
    definition = readable(job)
    after = decide(job, definition, ended)
    if after.delete:
        turn.store.run("delete_job", position=job.position)
        before = changes.scheduling(definition) if definition else None
        changes.note(
            turn, changes.CRONWARD, "removed", changes.Detail(before=before, why="its run went well"), job.job_id
        )
        turn.effects.job_events.append(JobEvent("removed", job.job_id))
        return
    failed = ended.status is not Status.OK
    turn.store.run(
        "record_run",
        position=job.position,
        last_run_ms=ended.started_ms,
        last_duration_ms=ended.duration_ms,
        last_status=ended.status,
        last_reason=ended.reason,
        last_error=ended.message[:1000] if failed else None,
        consecutive_errors=after.consecutive_errors,
        consecutive_skipped=after.consecutive_skipped,
    )
    if after.disable and definition is not None:
        _disable(turn, job, definition)


def _disable(turn: Turn, job: JobRow, definition: jobs.Definition) -> None:
    disabled = msgspec.structs.replace(definition, enabled=False)
    data = jobs.encode(disabled)
    turn.store.run(
        "update_job",
        position=job.position,
        name=job.name,
        enabled=0,
        schedule_kind="at",
        definition=data.decode(),
        revision=jobs.revision(data),
        now_ms=turn.now_ms,
    )
    detail = changes.Detail(why="its only slot is used up")
    changes.note_update(turn, changes.CRONWARD, job.job_id, definition, disabled, detail)
    view = job_views.load_view(turn.store, job.job_id)
    turn.effects.job_events.append(JobEvent("updated", job.job_id, view))


def readable(job: JobRow) -> jobs.Definition | None:
    """The definition, or None if the row is damaged or of a newer release."""
    try:
        return job.decode()
    except msgspec.DecodeError:
        return None
