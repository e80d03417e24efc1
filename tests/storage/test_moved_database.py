"""The database file is taken away under a running service."""

from pathlib import Path

from cronward.protocol.views import BackupAnswer, JobList
from tests.support.control import Rejected
from tests.support.instance import Instance
from tests.support.waiting import wait_until


def refusal(instance: Instance) -> str:
    try:
        instance.add_command_job(["/bin/true"])
    except Rejected as rejected:
        return rejected.code
    return ""


def test_nothing_is_acknowledged_that_the_next_start_would_not_find(instance: Instance) -> None:
    instance.start()
    run_id = instance.start_job(300)
    database = instance.paths.database
    away = Path(f"{database}.away")
    database.rename(away)
    assert refusal(instance) == "STORAGE_MOVED"
    wait_until(lambda: instance.sidelog.count("job:end") == 1, "the command ends")
    assert instance.run_view(run_id).state == "active", "not recorded, and not forgotten"
    away.rename(database)
    assert instance.wait_for_run(run_id).state == "ok"
    assert instance.sidelog.count("job:start") == 1
    assert instance.events("storage.moved")
    assert instance.wait_event("storage.recovered")  # a message that came in between may be recorded before it


def test_a_backup_saves_what_the_service_still_holds(instance: Instance) -> None:
    instance.start()
    job = instance.add_command_job(["/bin/true"])
    database = instance.paths.database
    database.unlink()
    assert refusal(instance) == "STORAGE_MOVED"
    copy = instance.root / "copy"
    instance.client().call("service.backup", BackupAnswer, {"path": str(copy)})
    instance.scheduler.terminate()
    copy.rename(database)
    Path(f"{database}-wal").unlink(missing_ok=True)
    instance.start_scheduler()
    assert [view.id for view in instance.client().call("cron.list", JobList).jobs] == [job.id]
