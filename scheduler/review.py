"""Review of deadlines: a walk over all jobs, a few each second, when something may have moved the slots under them.

That is a new zone database, which moves deadlines, and a clock that was set back, which does not: such deadlines stay
as they are and are counted, so that operators see them.
"""

from cronward.protocol import job as jobs
from cronward.protocol import log
from cronward.schedule import planner, zone_database
from cronward.schedule.deadline import Deadline, Kind
from cronward.schedule.far_ahead import is_far_ahead
from cronward.scheduler import aftermath
from cronward.scheduler.flags import EXHAUSTED, flag
from cronward.scheduler.rows import JobRow, job_rows, text
from cronward.scheduler.world import Turn

BATCH = 100
ZONE_DATABASE = "zone_database"
CLOCK_WENT_BACK = "clock_went_back"


def begin(turn: Turn) -> None:
    """At a start: whether the zones changed, or the clock was set back, while nobody looked."""
    check_zones(turn)
    seen_ms = turn.store.integer("last_seen")
    if seen_ms > turn.now_ms:
        clock_went_back(turn, turn.now_ms - seen_ms)
    elif turn.store.row("get_meta", key=CLOCK_WENT_BACK) is not None:
        turn.world.review.start()


def check_zones(turn: Turn) -> None:
    """Compares the zone database with the one that the deadlines were planned by."""
    found = zone_database.fingerprint()
    known = turn.store.row("get_meta", key=ZONE_DATABASE)
    if known is not None and text(known[0]) == found:
        return
    turn.store.run("set_meta", key=ZONE_DATABASE, value=found)
    if known is not None:
        zone_database.forget()
        turn.world.review.start()
        log.warning("zones.changed", "the zone database was updated; deadlines are reviewed")


def clock_went_back(turn: Turn, step_ms: int) -> None:
    """Remembered until no deadline is far ahead any more."""
    turn.store.run("set_meta", key=CLOCK_WENT_BACK, value=str(step_ms))
    turn.world.review.start()


def step(turn: Turn) -> None:
    """The next few jobs of a review that is going on."""
    review = turn.world.review
    if review.position is None:
        return
    rows = job_rows(turn.store.rows("jobs_after", position=review.position, limit=BATCH))
    for job in rows:
        review.found += _look_at(turn, job)
    if len(rows) == BATCH:
        review.position = rows[-1].position
        return
    review.finish()
    if not review.far_ahead:
        turn.store.run("delete_meta", key=CLOCK_WENT_BACK)


def _look_at(turn: Turn, job: JobRow) -> bool:
    """Repairs the deadline if it is no slot any more. True if it is far ahead."""
    deadline, definition = job.deadline, aftermath.readable(job)
    if definition is None or deadline is None or deadline.due_ms <= turn.now_ms:
        return False
    try:
        if (
            deadline.kind is Kind.SLOT
            and isinstance(definition.schedule, jobs.Cron)
            and _has_moved(definition.schedule, job, deadline)
        ):
            moved_ms = planner.next_slot_ms(definition.schedule, job_id=job.job_id, after_ms=turn.now_ms)
            if moved_ms is None:
                flag(turn, job, EXHAUSTED)
                return False
            turn.store.run(
                "set_deadline", position=job.position, next_due_ms=moved_ms, due_kind=Kind.SLOT, due_slot_ms=None
            )
            log.info("job.replanned", "its slots have moved", job=job.job_id, was_ms=deadline.due_ms, due_ms=moved_ms)
            return False
        return is_far_ahead(
            definition.schedule,
            deadline,
            job_id=job.job_id,
            changed_ms=job.scheduled_ms,
            last_run_ms=job.last_run_ms,
            now_ms=turn.now_ms,
        )
    except planner.Unplannable:
        return False


def _has_moved(schedule: jobs.Cron, job: JobRow, deadline: Deadline) -> bool:
    return planner.next_slot_ms(schedule, job_id=job.job_id, after_ms=deadline.slot - 1) != deadline.slot
