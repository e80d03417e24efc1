"""Due decisions: a job whose deadline has come gets a request and its next deadline, in one transaction (commit A)."""

from cronward.protocol import ids, log
from cronward.protocol import job as jobs
from cronward.protocol.outcome import Reason
from cronward.schedule import auto_disable, backoff, catch_up, planner
from cronward.schedule.auto_disable import Cause
from cronward.schedule.deadline import Deadline, Kind
from cronward.scheduler import aftermath, disabling, late, ledger, review, slot_decisions
from cronward.scheduler.flags import EXHAUSTED, UNREADABLE, flag
from cronward.scheduler.late import Course
from cronward.scheduler.rows import JobRow, job_rows, live_run, served_ahead
from cronward.scheduler.slot_decisions import Decision
from cronward.scheduler.store import StorageBlocked, StorageFailed
from cronward.scheduler.world import Mode, Turn, World

BATCH = 64
"""Due jobs per turn: the first of a burst are launched while the others are still being requested."""


def may_decide(world: World) -> bool:
    """Not while paused, draining or stopping, while nothing can be written, or before the first launcher of this life
    has said what became of the runs of the last one: a slot must not be lost to a run that is already over."""
    return world.mode is Mode.RUNNING and world.caught_up and world.storage_error is None


def decide_due(turn: Turn) -> bool:
    """Handles a batch of due jobs, each in a savepoint. True if there may be more."""
    _look(turn)
    due = job_rows(turn.store.rows("due_jobs", now_ms=turn.now_ms, limit=BATCH))
    for job in due:
        mark = turn.effects.mark()
        try:
            with turn.store.savepoint():
                _decide(turn, job)
        except (StorageBlocked, StorageFailed):
            raise
        except Exception as error:
            turn.effects.return_to(mark)
            log.error("job.due_failed", "a due job could not be handled; it is flagged", exc_info=True, job=job.job_id)
            turn.store.run("flag_job", position=job.position, flag=f"internal error: {error}")
    return len(due) == BATCH


def _look(turn: Turn) -> None:
    """Notices gaps, and a clock that was set."""
    config = turn.world.settings.config.catch_up
    step_ms = turn.world.attention.look(turn.now_ms, turn.mono_ms, catch_up.pace(config), round(config.grace_s * 1000))
    if step_ms:
        log.warning("clock.stepped", "the clock was set, or the machine was suspended", step_ms=step_ms)
    if step_ms < 0:
        review.clock_went_back(turn, step_ms)


def _decide(turn: Turn, job: JobRow) -> None:
    deadline = job.deadline
    if deadline is None:
        raise ValueError("a due job has a deadline")
    definition = aftermath.readable(job)
    if definition is None:
        flag(turn, job, UNREADABLE)
        return
    if _waits_for_backoff(turn, job, definition, deadline):
        return
    try:
        course = _course(turn, job, definition, deadline)
        _plan(turn, job, definition, course.then)
    except planner.Unplannable as error:
        _flag_unplannable(turn, job, definition, error)
        course = Course(deadline.slot, None)
    if course.slot_ms is not None:
        _request(turn, job, definition, course.slot_ms)
    elif isinstance(definition.schedule, jobs.At) and course.then is None:
        _skip(turn, job, deadline.slot, Reason.MISSED, "its time was missed by more than its catch-up allows")


def _waits_for_backoff(turn: Turn, job: JobRow, definition: jobs.Definition, deadline: Deadline) -> bool:
    """A run by hand failed shortly before the slot: the job is tried again after its backoff, not at the slot. Not
    while a run is live, such as a retry: that consumes the slot, and its end says what follows."""
    if job.backoff_until_ms is None or deadline.kind not in (Kind.SLOT, Kind.BACKOFF):
        return False
    if live_run(turn.store, job.job_id) is not None:
        return False
    rules = backoff.rules(turn.world.settings.config.retry, definition.retry)
    until_ms = backoff.gate_ms(rules, definition.schedule, job.backoff_until_ms, turn.now_ms)
    if until_ms is None:
        return False
    _set_deadline(turn, job, Deadline(until_ms, Kind.BACKOFF))
    slot_decisions.note(turn, job.job_id, Decision.BACKOFF, deadline.slot, until_ms)
    return True


def _course(turn: Turn, job: JobRow, definition: jobs.Definition, deadline: Deadline) -> Course:
    """What to do at this deadline. Raises Unplannable."""
    if turn.world.attention.was_missed(deadline.due_ms):
        return late.missed(turn, job, definition, deadline)
    if deadline.kind is Kind.CATCH_UP:
        return late.deferred(turn, job, definition, deadline)
    return Course(deadline.slot, _planned(turn, job, definition))


def _planned(turn: Turn, job: JobRow, definition: jobs.Definition) -> Deadline | None:
    """The next slot, also where the clock was set back since the last run. Raises Unplannable."""
    if job.last_run_ms is None or job.last_run_ms <= turn.now_ms:
        return natural_deadline(job, definition, turn.now_ms)
    slot_ms = next_free_slot_ms(turn, definition.schedule, job.job_id)
    return None if slot_ms is None else Deadline(slot_ms)


def natural_deadline(job: JobRow, definition: jobs.Definition, now_ms: int) -> Deadline | None:
    """The next slot; always later than now. Raises Unplannable."""
    slot_ms = planner.next_slot_ms(definition.schedule, job_id=job.job_id, after_ms=now_ms)
    return None if slot_ms is None else Deadline(slot_ms)


def next_free_slot_ms(turn: Turn, schedule: jobs.Schedule, job_id: str) -> int | None:
    """The next slot that has no run yet: a clock that was ahead has served some that are still to come. Raises
    Unplannable."""
    served_ms = served_ahead(turn.store, job_id, turn.now_ms)
    slot_ms = planner.next_slot_ms(schedule, job_id=job_id, after_ms=turn.now_ms)
    while slot_ms in served_ms:
        slot_ms = planner.next_slot_ms(schedule, job_id=job_id, after_ms=slot_ms)
    return slot_ms


def _request(turn: Turn, job: JobRow, definition: jobs.Definition, slot_ms: int) -> None:
    run_id = ids.slot_run_id(turn.world.settings.config.store_key, job.job_id, slot_ms)
    if not ledger.request(turn, job, ledger.Request(run_id, "scheduled", slot_ms)):
        _consume(turn, job, definition, run_id, slot_ms)


def _consume(turn: Turn, job: JobRow, definition: jobs.Definition, run_id: str, slot_ms: int) -> None:
    """The slot was requested before, or the job still has a live run. A one-shot's only slot is not lost silently."""
    live = live_run(turn.store, job.job_id)
    if live is not None and live.kind == "manual" and isinstance(definition.schedule, jobs.At):
        late.wait_for_live_run(turn, job, slot_ms)
        return
    if live is None or live.run_id == run_id:
        log.info("slot.already_requested", "the slot has its run already", job=job.job_id, slot_ms=slot_ms)
        return
    turn.store.run("consume_slot", position=job.position)
    slot_decisions.note(turn, job.job_id, Decision.CONSUMED, slot_ms, turn.now_ms, live.run_id)
    log.warning(
        "slot.consumed", "the job's earlier run is still live", job=job.job_id, slot_ms=slot_ms, run=live.run_id
    )
    if isinstance(definition.schedule, jobs.At):
        message = f"its run {live.run_id} was still {live.state} when the time came"
        _skip(turn, job, slot_ms, Reason.NOT_DUE, message)


def _skip(turn: Turn, job: JobRow, slot_ms: int, reason: Reason, message: str) -> None:
    run_id = ids.slot_run_id(turn.world.settings.config.store_key, job.job_id, slot_ms)
    ledger.request_skipped(turn, job, ledger.Request(run_id, "scheduled", slot_ms), reason, message)


def advance(turn: Turn, job: JobRow, definition: jobs.Definition) -> None:
    """Writes the deadline after now, or the flag."""
    try:
        _plan(turn, job, definition, _planned(turn, job, definition))
    except planner.Unplannable as error:
        _flag_unplannable(turn, job, definition, error)


def _plan(turn: Turn, job: JobRow, definition: jobs.Definition, deadline: Deadline | None) -> None:
    """The next deadline. That there is none any more is no error, but somebody should know."""
    _set_deadline(turn, job, deadline)
    if deadline is None and not isinstance(definition.schedule, jobs.At):
        flag(turn, job, EXHAUSTED)


def _set_deadline(turn: Turn, job: JobRow, deadline: Deadline | None) -> None:
    turn.store.run(
        "set_deadline",
        position=job.position,
        next_due_ms=deadline.due_ms if deadline else None,
        due_kind=deadline.kind if deadline else Kind.SLOT,
        due_slot_ms=deadline.slot_ms if deadline else None,
    )


def restore_deadlines(turn: Turn) -> None:
    """Enabled jobs whose deadline was lost (a row that was changed by hand, a zone that was gone) are planned anew, or
    flagged."""
    for job in job_rows(turn.store.rows("jobs_without_deadline")):
        definition = aftermath.readable(job)
        if definition is None:
            flag(turn, job, UNREADABLE)
        else:
            advance(turn, job, definition)


def _flag_unplannable(turn: Turn, job: JobRow, definition: jobs.Definition, error: planner.Unplannable) -> None:
    """Planned again at each start; given up when that goes on failing."""
    flag(turn, job, f"schedule error: {error}")
    errors = job.schedule_errors + 1
    if auto_disable.after_schedule_errors(errors, turn.world.settings.config.retry.disable_after_schedule_errors):
        disabling.auto(turn, job, definition, Cause.SCHEDULE_ERRORS, errors, str(error))
