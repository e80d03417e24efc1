"""What a database has to bear in the long run: much history, many runs, damaged rows."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.protocol import launch
from cronward.protocol.config import Config, Retention
from cronward.protocol.views import JobList
from cronward.scheduler import database, queries
from cronward.scheduler.database import close_database
from tests.support.scheduler_bench import Bench

MINUTE = 60_000
OLD_RUNS = 50_000
CHANGES_PER_SWEEP_MAX = 5_000
"""200 by age, 20 jobs with 200 each, and a little of everything else."""

INSERT_OLD = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :count)
INSERT INTO runs (run_id, run_key, job_id, job_position, job_name, kind, slot_ms, requested_ms, state, ended_ms)
SELECT 'old-' || n, 'key-' || n, 'job-' || (n % 100), 1000, 'old', 'scheduled', n, n, 'ok', n FROM number
"""

BROKEN = {
    "bad JSON": "UPDATE jobs SET definition = '{\"broken'",
    "unknown kind": "UPDATE jobs SET definition = replace(definition, '\"every\"', '\"never heard of\"')",
    "no deadline": "UPDATE job_state SET next_due_ms = NULL",
    "bad expression": "UPDATE jobs SET schedule_kind = 'cron', definition = json_set(definition, '$.schedule',"
    ' json(\'{"kind": "cron", "expr": "61 * * * *", "tz": "UTC"}\'))',
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    scheduler = Bench(tmp_path, Config(retention=Retention(days=1, runs_per_job=50)))
    yield scheduler
    scheduler.close()


def test_a_purge_is_done_in_small_steps_and_holds_up_no_start(bench: Bench) -> None:
    """B181: each turn changes a bounded number of rows, and a job that is due in between starts in its turn."""
    bench.reconcile()
    job = bench.every(MINUTE)
    bench.connection.execute(INSERT_OLD, {"count": OLD_RUNS})
    for second in range(MINUTE // 1000):
        before = bench.connection.total_changes()
        bench.turn(1000)
        assert bench.connection.total_changes() - before < CHANGES_PER_SWEEP_MAX
        if second % 10 == 0:
            bench.tell(launch.Forgotten(bench.orders(launch.Forget)[-1].runs))
    bench.turns()
    assert [view.job_id for view in bench.run_events() if view.state == "active"] == [job.id]
    ((left,),) = bench.sql("SELECT count(*) FROM runs WHERE job_name = 'old' AND forget_ms IS NULL")
    assert isinstance(left, int)
    assert left < OLD_RUNS // 2


def test_the_file_stops_growing(bench: Bench) -> None:
    """B182: freed pages are used again, so that a steady load has a steady size."""
    bench.reconcile()
    jobs = [bench.add(name=f"job {number}") for number in range(2)]
    sizes = []
    for _ in range(6):
        for _ in range(60):
            for run_id in [bench.start(job) for job in jobs]:
                bench.report(run_id)
        for _ in range(4):
            bench.turn(1000)
            for order in bench.orders(launch.Forget)[-1:]:
                bench.tell(launch.Forgotten(order.runs))
        sizes.append(int(bench.connection.pragma("page_count")))
    kept = bench.sql("SELECT count(*) FROM runs WHERE forget_ms IS NULL")
    assert kept == [(100,)]
    # What is bounded by much higher numbers (changes, notices) may still grow by a page now and then.
    assert sizes[-1] - sizes[2] <= 4, sizes


def test_a_backup_that_was_answered_survives_a_power_loss(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is synced after its content, and both before the answer."""
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        assert bench.ports.answers == []
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    bench.post("service.backup", {"path": str(tmp_path / "backup.db")})
    bench.turns()
    assert [answer.ok for answer in bench.ports.answers] == [True]
    assert synced == [str(tmp_path / "backup.db.part"), str(tmp_path)]


@pytest.mark.parametrize("damage", BROKEN)
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_broken_row_stops_nobody(bench: Bench, damage: str, restarted: bool) -> None:
    """B184: the broken job is flagged, or planned anew; all others fire in time."""
    bench.reconcile()
    broken = bench.every(MINUTE, name="broken")
    others = [bench.every(MINUTE, name=f"job {number}") for number in range(3)]
    where = f"WHERE position = (SELECT position FROM jobs WHERE job_id = '{broken.id}')"
    bench.connection.execute(f"{BROKEN[damage]} {where}")
    if restarted:
        bench.crash()
        bench.reconcile()
    bench.turn(MINUTE)
    bench.turns()
    active = {view.job_id for view in bench.run_events() if view.state == "active"}
    assert active >= {job.id for job in others}
    if damage == "no deadline":
        assert (broken.id in active) == restarted
        return
    assert (broken.id in active) == (damage == "bad expression")  # its last slot was planned while it was sound
    assert bench.sql("SELECT flag IS NOT NULL FROM job_state JOIN jobs USING (position) WHERE name = 'broken'") == [
        (1,)
    ]


def test_a_migrated_database_has_all_its_jobs_at_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B185: sockets are bound after the migration, and rows are read when they are asked for."""
    bench = Bench(tmp_path)
    for number in range(70):
        bench.add(name=f"job {number}")
    close_database(bench.connection)
    next_version = database.SCHEMA_VERSION + 1
    (tmp_path / f"{next_version:04}.sql").write_text("CREATE TABLE added (x INTEGER) STRICT;")
    monkeypatch.setattr(database, "SCHEMA_VERSION", next_version)
    monkeypatch.setattr(queries, "MIGRATIONS", tmp_path)
    bench.begin()
    assert bench.ask("cron.list", JobList).total == 70
    bench.close()
