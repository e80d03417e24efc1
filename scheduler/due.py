"""Due decisions: a job whose deadline has come gets a request and its next deadline, in one transaction (commit A)."""

import msgspec

from cronward.protocol import ids, log
from cronward.protocol import job as jobs
from cronward.protocol.outcome import Reason
from cronward.schedule import planner
from cronward.scheduler import ledger, slot_decisions
from cronward.scheduler.rows import JobRow, job_rows, live_run
from cronward.scheduler.slot_decisions import Decision
from cronward.scheduler.store import StorageFailed, StorageFull
from cronward.scheduler.world import Mode, Turn, World

BATCH = 64
"""Due jobs per turn: the first of a burst are launched while the others are still being requested."""


class Plan(msgspec.Struct, frozen=True):
    """What happens to a due job: `next_due_ms` (None: never again), and `flag` if it cannot be known."""

    next_due_ms: int | None
    flag: str | None = None


def plan(job: JobRow, definition: jobs.Definition, now_ms: int) -> Plan:
    """The deadline after the one that has come; always later than now, so missed slots are one slot."""
    try:
        return Plan(planner.next_slot_ms(definition.schedule, job_id=job.job_id, after_ms=now_ms))
    except planner.Unplannable as error:
        return Plan(None, f"schedule error: {error}")


def may_decide(world: World) -> bool:
    """Not while paused, draining or stopping, while nothing can be written, or before the first launcher of this life
    has said what became of the runs of the last one: a slot must not be lost to a run that is already over."""
    return world.mode is Mode.RUNNING and world.caught_up and world.storage_error is None


def decide_due(turn: Turn) -> bool:
    """Handles a batch of due jobs, each in a savepoint. True if there may be more."""
    due = job_rows(turn.store.rows("due_jobs", now_ms=turn.now_ms, limit=BATCH))
    for job in due:
        mark = turn.effects.mark()
        try:
            with turn.store.savepoint():
                _request(turn, job)
        except (StorageFull, StorageFailed):
            raise
        except Exception as error:
            turn.effects.return_to(mark)
            log.error("job.due_failed", "a due job could not be handled; it is flagged", exc_info=True, job=job.job_id)
            turn.store.run("flag_job", position=job.position, flag=f"internal error: {error}")
    return len(due) == BATCH


def _request(turn: Turn, job: JobRow) -> None:
    slot_ms = job.next_due_ms
    if slot_ms is None:
        raise ValueError("a due job has a deadline")
    try:
        definition = job.decode()
    except msgspec.DecodeError as error:
        flag(turn, job, f"the stored definition cannot be read: {error}")
        return
    advance(turn, job, definition)
    run_id = ids.slot_run_id(turn.world.settings.config.store_key, job.job_id, slot_ms)
    if not ledger.request(turn, job, ledger.Request(run_id, "scheduled", slot_ms)):
        _consume(turn, job, definition, run_id, slot_ms)


def advance(turn: Turn, job: JobRow, definition: jobs.Definition) -> None:
    """Writes the deadline after the one that is being consumed, or the flag."""
    planned = plan(job, definition, turn.now_ms)
    if planned.flag is None:
        turn.store.run("set_deadline", position=job.position, next_due_ms=planned.next_due_ms)
    else:
        flag(turn, job, planned.flag)


def restore_deadlines(turn: Turn) -> None:
    """Enabled jobs whose deadline was lost (a row that was changed by hand) are planned anew, or flagged."""
    for job in job_rows(turn.store.rows("jobs_without_deadline")):
        try:
            advance(turn, job, job.decode())
        except msgspec.DecodeError as error:
            flag(turn, job, f"the stored definition cannot be read: {error}")


def _consume(turn: Turn, job: JobRow, definition: jobs.Definition, run_id: str, slot_ms: int) -> None:
    """The slot was requested before, or the job still has a live run. A one-shot's only slot is not lost silently."""
    live = live_run(turn.store, job.job_id)
    if live is None or live.run_id == run_id:
        log.info("slot.already_requested", "the slot has its run already", job=job.job_id, slot_ms=slot_ms)
        return
    turn.store.run("consume_slot", position=job.position)
    slot_decisions.note(turn, job.job_id, Decision.CONSUMED, slot_ms, slot_ms, live.run_id)
    log.warning(
        "slot.consumed", "the job's earlier run is still live", job=job.job_id, slot_ms=slot_ms, run=live.run_id
    )
    if isinstance(definition.schedule, jobs.At):
        wanted = ledger.Request(run_id, "scheduled", slot_ms)
        message = f"its run {live.run_id} was still {live.state} when the time came"
        ledger.request_skipped(turn, job, wanted, Reason.NOT_DUE, message)


def flag(turn: Turn, job: JobRow, problem: str) -> None:
    """The job cannot be run: visible, and never in the way of others."""
    turn.store.run("flag_job", position=job.position, flag=problem)
    log.error("job.flagged", problem, job=job.job_id)
