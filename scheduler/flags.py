"""Flags: why a job cannot be run as it is, visible, and never in the way of others."""

from cronward.protocol import log
from cronward.scheduler.rows import JobRow
from cronward.scheduler.world import Turn

UNREADABLE = "the stored definition cannot be read by this release"
EXHAUSTED = "the schedule has no further slot"


def flag(turn: Turn, job: JobRow, problem: str) -> None:
    """It is not due any more until it is planned anew: by an edit, or at the next start."""
    turn.store.run("flag_job", position=job.position, flag=problem)
    log.error("job.flagged", problem, job=job.job_id)
