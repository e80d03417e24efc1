"""Retention: a little each second. Rows are marked, the launcher deletes directories, then the rows go."""

from cronward.protocol import launch
from cronward.scheduler.rows import integer, text
from cronward.scheduler.world import Turn

MARK_BATCH = 200
JOBS_PER_SWEEP = 20
FORGET_BATCH = 100
REQUESTS_KEPT_MS = 7 * 24 * 3600 * 1000
NOTICES_KEPT_MS = 30 * 24 * 3600 * 1000
DECISIONS_KEPT_MS = 30 * 24 * 3600 * 1000
CHANGES_KEPT = 100_000
LIVES_KEPT = 1_000
FORGOTTEN_UNTIL = "forgotten_until_ms"
"""Key in meta: runs with slots before this may be gone, whatever the clock or the configuration says by now. It lies
later than the end of the runs that are gone where a clock that was ahead had served their slots."""


class Retention:
    """Walks over the jobs that have history, a few per sweep."""

    def __init__(self) -> None:
        self._cursor = ""

    def sweep(self, turn: Turn) -> None:
        """Marks what is too old or too much, asks the launcher to delete what is marked."""
        kept = turn.world.settings.config.retention
        store, now_ms = turn.store, turn.now_ms
        before_ms = now_ms - int(kept.days * 86_400_000)
        old = store.rows("forget_old", now_ms=now_ms, before_ms=before_ms, limit=MARK_BATCH)
        if old:
            until_ms = max(before_ms, *(integer(row[0]) + 1 for row in old))
            store.run("raise_meta", key=FORGOTTEN_UNTIL, value=str(until_ms))
        for _ in range(JOBS_PER_SWEEP):
            row = store.row("jobs_with_history_after", after=self._cursor)
            if row is None or row[0] is None:
                self._cursor = ""
                break
            self._cursor = text(row[0])
            store.run("forget_surplus", now_ms=now_ms, job_id=self._cursor, keep=kept.runs_per_job, limit=MARK_BATCH)
        forgotten = [text(row[0]) for row in store.rows("forgotten_runs", limit=FORGET_BATCH)]
        if forgotten and turn.world.link.can_launch():
            turn.effects.to_launcher.append(launch.Forget(forgotten))

    def prune(self, turn: Turn) -> None:
        """The side tables; called rarely."""
        store, now_ms = turn.store, turn.now_ms
        store.run("prune_requests", before_ms=now_ms - REQUESTS_KEPT_MS, limit=10_000)
        store.run("prune_notices", before_ms=now_ms - NOTICES_KEPT_MS)
        store.run("prune_changes", keep=CHANGES_KEPT)
        store.run("prune_slot_decisions", before_ms=now_ms - DECISIONS_KEPT_MS, limit=10_000)
        store.run("prune_lives", keep=LIVES_KEPT)
