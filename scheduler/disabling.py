"""Jobs that Cronward itself switches off: one-shots that are used up, and jobs that go on failing."""

import msgspec

from cronward.protocol import job as jobs
from cronward.protocol import log
from cronward.schedule import auto_disable
from cronward.schedule.auto_disable import Cause
from cronward.scheduler import changes, job_views, notices
from cronward.scheduler.effects import JobEvent
from cronward.scheduler.rows import JobRow
from cronward.scheduler.world import Turn


def use_up(turn: Turn, job: JobRow, definition: jobs.Definition) -> None:
    """A one-shot has had its slot and is kept."""
    _switch_off(turn, job, definition, "its only slot is used up")


def auto(turn: Turn, job: JobRow, definition: jobs.Definition, cause: Cause, errors: int, problem: str) -> None:
    """Something failed too often: visible in the job, told in a notice, undone by `enable`."""
    turn.store.run("mark_auto_disabled", position=job.position, cause=cause, now_ms=turn.now_ms)
    text = auto_disable.notice(job.name, cause, errors, problem)
    notices.add(turn, f"auto-disabled:{job.job_id}:{turn.now_ms}", "auto_disabled", text)
    log.error("job.auto_disabled", text, job=job.job_id, cause=str(cause), errors=errors)
    _switch_off(turn, job, definition, f"{cause}: {errors} in a row")


def _switch_off(turn: Turn, job: JobRow, definition: jobs.Definition, why: str) -> None:
    disabled = msgspec.structs.replace(definition, enabled=False)
    data = jobs.encode(disabled)
    turn.store.run(
        "update_job",
        position=job.position,
        name=job.name,
        enabled=0,
        schedule_kind=jobs.kind(definition.schedule),
        definition=data.decode(),
        revision=jobs.revision(data),
        now_ms=turn.now_ms,
    )
    changes.note_update(turn, changes.CRONWARD, job.job_id, definition, disabled, changes.Detail(why=why))
    view = job_views.load_view(turn.store, job.job_id)
    turn.effects.job_events.append(JobEvent("updated", job.job_id, view))
