"""What a terminal run leaves on its job: the decision is `after_run`'s, here it is written."""

import msgspec

from cronward.protocol import job as jobs
from cronward.protocol.outcome import Reason, Status
from cronward.schedule import after_run, backoff
from cronward.schedule.after_run import After, Fate
from cronward.schedule.auto_disable import Cause
from cronward.schedule.deadline import Kind
from cronward.scheduler import changes, disabling, slot_decisions
from cronward.scheduler.effects import JobEvent
from cronward.scheduler.rows import JobRow
from cronward.scheduler.slot_decisions import Decision
from cronward.scheduler.world import Turn

BESIDE_THE_SCHEDULE = frozenset({"force", "if-enabled"})
"""Modes of manual runs that leave the schedule alone."""


class Finished(msgspec.Struct, frozen=True):
    """A run that has ended. `kind` is scheduled, event, or the mode of a manual run; requested at `asked_ms`."""

    run_id: str
    kind: str
    asked_ms: int
    status: Status
    reason: Reason | None
    message: str
    started_ms: int
    ended_ms: int
    duration_ms: int


def apply(turn: Turn, job: JobRow, finished: Finished) -> None:
    """Decides and writes."""
    definition = readable(job)
    after = _decide(turn, job, definition, finished)
    if after.fate is Fate.DELETED:
        _delete(turn, job, definition)
        return
    _record(turn, job, finished, after)
    if definition is None:
        return
    if after.fate is Fate.USED_UP:
        disabling.use_up(turn, job, definition)
    elif after.fate is Fate.AUTO_DISABLED:
        problem = finished.message or str(finished.reason)
        disabling.auto(turn, job, definition, Cause.CONSECUTIVE_FAILURES, after.consecutive_errors, problem[:200])


def _decide(turn: Turn, job: JobRow, definition: jobs.Definition | None, finished: Finished) -> After:
    rules = backoff.rules(turn.world.settings.config.retry, definition.retry if definition else None)
    state = after_run.Job(
        definition,
        job.deadline,
        job.consecutive_errors,
        job.consecutive_skipped,
        job.backoff_until_ms,
        changed=job.changed_while_active,
    )
    ended = after_run.Ended(
        finished.status,
        finished.reason,
        finished.message,
        min(finished.ended_ms, turn.now_ms),  # the clock may have been set back since
        turn.now_ms,
        finished.run_id,
        forced=finished.kind in BESIDE_THE_SCHEDULE,
        asked_ms=finished.asked_ms,
    )
    return after_run.decide(state, ended, rules)


def _record(turn: Turn, job: JobRow, finished: Finished, after: After) -> None:
    deadline = after.deadline
    turn.store.run(
        "record_run",
        position=job.position,
        last_run_ms=finished.started_ms,
        last_duration_ms=finished.duration_ms,
        last_status=finished.status,
        last_reason=finished.reason,
        last_error=finished.message[:1000] if finished.status is not Status.OK else None,
        consecutive_errors=after.consecutive_errors,
        consecutive_skipped=after.consecutive_skipped,
        next_due_ms=deadline.due_ms if deadline else None,
        due_kind=deadline.kind if deadline else Kind.SLOT,
        due_slot_ms=deadline.slot_ms if deadline else None,
        backoff_until_ms=after.backoff_until_ms,
    )
    if deadline is not None and deadline.kind is Kind.BACKOFF and job.deadline is not None and deadline != job.deadline:
        slot_decisions.note(
            turn, job.job_id, Decision.BACKOFF, job.deadline.slot, deadline.due_ms, run_id=finished.run_id
        )


def _delete(turn: Turn, job: JobRow, definition: jobs.Definition | None) -> None:
    turn.store.run("delete_job", position=job.position)
    before = changes.scheduling(definition) if definition else None
    detail = changes.Detail(before=before, name=job.name, why="its run went well")
    changes.note(turn, changes.CRONWARD, "removed", detail, job.job_id)
    turn.effects.job_events.append(JobEvent("removed", job.job_id))


def readable(job: JobRow) -> jobs.Definition | None:
    """The definition, or None if the row is damaged or of a newer release."""
    try:
        return job.decode()
    except msgspec.DecodeError:
        return None
