"""The files of the locks are removed while their holders run: each notices, ends, and its successor locks again."""

import subprocess
import sys
from pathlib import Path

from cronward.protocol import exits, locks
from tests.support.instance import Instance
from tests.support.waiting import wait_until

WAIT_S = locks.CHECK_MS / 1000 + 10


def test_daemons_whose_lock_was_removed_end_and_runs_go_on(instance: Instance) -> None:
    instance.start()
    run_id = instance.start_job(stay_ms=int(WAIT_S * 1000))
    for lock in (instance.paths.launcher_lock, instance.paths.scheduler_lock):
        lock.unlink()
    for daemon in (instance.launcher, instance.scheduler):
        assert daemon.process.wait(WAIT_S) == exits.ALREADY_RUNNING
        assert len(daemon.events("lock.lost")) == 1
    instance.start()
    assert instance.wait_for_run(run_id, deadline_s=2 * WAIT_S).state == "ok"
    assert (instance.sidelog.count("job:start"), instance.sidelog.count("job:end")) == (1, 1)


def test_a_second_launcher_that_took_over_and_died_leaves_nothing_wedged(instance: Instance) -> None:
    instance.start()
    first = instance.launcher
    instance.paths.launcher_lock.unlink()
    instance.start_launcher()
    instance.launcher.kill()
    assert first.process.wait(WAIT_S) == exits.ALREADY_RUNNING
    instance.start_launcher()
    instance.wait_reconciled()
    assert instance.wait_for_run(instance.start_job(stay_ms=10)).state == "ok"


def test_a_restore_sees_a_running_scheduler_without_its_lock(instance: Instance, tmp_path: Path) -> None:
    instance.start_scheduler()
    instance.add_command_job(["/bin/true"])
    backup = tmp_path / "backup.db"
    instance.client().call("service.backup", dict[str, object], {"path": str(backup)})
    for lock in (instance.paths.scheduler_lock, instance.paths.runtime_lock):
        lock.unlink()
    before = instance.paths.database.stat().st_ino
    restoring = [sys.executable, "-m", "cronward.scheduler", "restore", str(backup)]
    done = subprocess.run(restoring, env=instance.environ, capture_output=True, text=True, check=False)
    assert done.returncode == exits.ALREADY_RUNNING
    assert "in use by a scheduler" in done.stderr
    assert instance.paths.database.stat().st_ino == before
    wait_until(lambda: not instance.scheduler.alive, "the scheduler notices that its lock is gone", WAIT_S)
