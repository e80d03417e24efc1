"""What became of slots that are no run, so that `why` can tell: a bounded number of rows per job."""

import enum

from cronward.scheduler.store import Value
from cronward.scheduler.world import Turn

KEPT_PER_JOB = 200


class Decision(enum.StrEnum):
    """Why a slot did not become a run of its own at its time."""

    CONSUMED = "consumed"
    """An earlier run of the job was still queued or active; `run_id` names it."""
    DROPPED = "dropped"
    """It was missed, and the job's catch-up leaves it out."""
    DEFERRED = "deferred"
    """It was missed, and is caught up at `until_ms`."""
    BACKOFF = "backoff"
    """The job failed: what comes before `until_ms` is left out; `run_id` names the failed run."""


def note(turn: Turn, job_id: str, decision: Decision, slot_ms: int, until_ms: int, run_id: str | None = None) -> None:
    """Slots from `slot_ms` to `until_ms`. The same decision for the same run again extends the row that is there."""
    columns: dict[str, Value] = {"job_id": job_id, "decision": decision, "until_ms": until_ms, "run_id": run_id}
    if run_id is not None and turn.store.run("extend_slot_decision", **columns):
        return
    turn.store.run("insert_slot_decision", slot_ms=slot_ms, at_ms=turn.now_ms, **columns)
    turn.store.run("prune_slot_decisions_of_job", job_id=job_id, keep=KEPT_PER_JOB)
