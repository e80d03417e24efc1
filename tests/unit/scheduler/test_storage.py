"""When the database cannot be written: a full disk is waited out, an I/O error ends the process."""

from pathlib import Path

import apsw
import pytest

from cronward.protocol import launch, run
from cronward.protocol.config import Config
from cronward.protocol.errors import Code
from cronward.protocol.job import Payload
from cronward.protocol.launch import RunState
from cronward.protocol.outcome import Outcome
from cronward.protocol.rundir import Limits
from cronward.protocol.views import CronStatus, JobView, ServiceStatus
from cronward.scheduler import ledger, settings
from cronward.scheduler.store import StorageBlocked, StorageFailed, Store
from cronward.scheduler.world import Turn
from tests.support.scheduler_bench import Bench, Refusal

MINUTE = 60_000


class Full:
    """Makes commits that change something fail, as SQLite does when there is no space for the log."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = False
        self._changes = 0
        real_begin, real_commit = Store.begin, Store.commit

        def begin(store: Store) -> None:
            real_begin(store)
            self._changes = store.connection.total_changes()

        def commit(store: Store) -> None:
            if self.on and store.connection.total_changes() != self._changes:
                raise StorageBlocked(Code.STORAGE_FULL, "the disk is full")
            real_commit(store)

        monkeypatch.setattr(Store, "begin", begin)
        monkeypatch.setattr(Store, "commit", commit)


@pytest.fixture
def disk(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> Full:
    return Full(ready, monkeypatch)


def test_reads_are_answered_and_writes_refused(ready: Bench, disk: Full) -> None:
    job = ready.add()
    disk.on = True
    for _ in range(2):
        with pytest.raises(Refusal, match="STORAGE_FULL"):
            ready.add()
        assert ready.ask("cron.status", CronStatus).jobs == 1
        assert ready.job(job).id == job.id
    assert ready.ask("service.status", ServiceStatus).storage_error is not None


def test_a_batch_of_both_gets_each_its_answer(ready: Bench, disk: Full) -> None:
    disk.on = True
    for method in ("cron.status", "service.pause", "cron.status"):
        ready.post(method)
    ready.turn()
    assert [answer.ok for answer in ready.ports.answers] == [True, False, True]


@pytest.mark.parametrize("method", ["service.pause", "service.resume"])
def test_what_was_refused_has_not_happened(ready: Bench, disk: Full, method: str) -> None:
    if method == "service.resume":
        ready.post("service.pause")
        ready.turn()
    before = ready.ask("service.status", ServiceStatus)
    disk.on = True
    with pytest.raises(Refusal, match="STORAGE_FULL"):
        ready.ask(method, ServiceStatus)
    after = ready.ask("service.status", ServiceStatus)
    assert (after.mode, after.paused_by) == (before.mode, before.paused_by)


def test_nothing_starts_and_facts_come_again(ready: Bench, disk: Full) -> None:
    job = ready.every(MINUTE)
    run_id = ready.start(ready.add())
    disk.on = True
    ready.report(run_id)
    assert ready.ports.run_wire.sent == []  # not acknowledged: it will be repeated
    ready.turn(MINUTE)
    ready.turns()
    assert ready.states() == {run_id: "active"}
    assert len(ready.launches) == 1
    disk.on = False
    ready.turns()
    assert ready.ask("service.status", ServiceStatus).storage_error is None
    assert ready.orders(launch.RegisterAgain)
    ready.reconcile({run_id: RunState.HELD})
    ready.report(run_id)
    assert [run.decode_to_executor(frames[-1]) for frames in ready.ports.run_wire.sent] == [run.Recorded(run_id)]
    ready.turns()
    assert list(ready.states().values()) == ["ok", "active"]
    assert ready.job(job).state.live_run_id is not None


def test_no_event_tells_of_what_was_undone(ready: Bench, disk: Full) -> None:
    disk.on = True
    with pytest.raises(Refusal):
        ready.add()
    assert [event.event for event in ready.ports.events if event.event == "cron"] == []


def test_a_backup_in_the_batch_that_found_the_disk_full_is_made(ready: Bench, disk: Full, tmp_path: Path) -> None:
    disk.on = True
    ready.post("service.backup", {"path": str(tmp_path / "copy")})
    ready.post("service.pause")
    ready.turn()
    ready.turns()
    assert sorted(answer.ok for answer in ready.ports.answers) == [False, True]
    assert (tmp_path / "copy").exists()
    assert not (tmp_path / "copy.part").exists()


def test_a_state_directory_that_became_something_else(ready: Bench, tmp_path: Path) -> None:
    state = ready.paths.state
    state.rename(tmp_path / "away")
    state.touch()
    with pytest.raises(Refusal, match="STORAGE_MOVED"):
        ready.add()
    state.unlink()
    (tmp_path / "away").rename(state)
    ready.turns()
    ready.add()


@pytest.mark.parametrize("other", [False, True])
def test_a_database_that_is_not_at_its_path_takes_nothing_until_it_is_back(
    ready: Bench, caplog: pytest.LogCaptureFixture, tmp_path: Path, *, other: bool
) -> None:
    """What was written to it would be lost with this process. A backup is the way to keep what there is."""
    job = ready.add()
    path = ready.paths.database
    path.rename(tmp_path / "away")
    if other:
        path.touch()
    with pytest.raises(Refusal, match=r"STORAGE_MOVED: the database .* was removed or replaced; nothing was changed"):
        ready.add()
    assert ready.job(job).id == job.id
    ready.post("service.backup", {"path": str(tmp_path / "copy")})
    ready.turns()
    assert ready.ports.answers[-1].ok
    assert logged(caplog).count("storage.moved") == 1
    (tmp_path / "away").rename(path)
    ready.turns()
    ready.add()
    assert ready.ask("service.status", ServiceStatus).storage_error is None


def test_it_is_logged_once(ready: Bench, disk: Full, caplog: pytest.LogCaptureFixture) -> None:
    disk.on = True
    for _ in range(5):
        with pytest.raises(Refusal):
            ready.add()
        ready.turn(1000)
    assert logged(caplog) == ["storage.full"]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Events of the log lines."""
    return [str(getattr(record, "event", "")) for record in caplog.records]


def test_the_log_tells_of_a_result_when_it_is_committed(
    ready: Bench, disk: Full, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    run_id = ready.start(ready.add())
    disk.on = True
    for _ in range(3):
        ready.report(run_id)
    assert "run.settled" not in logged(caplog)
    disk.on = False
    ready.turns()
    ready.report(run_id)
    assert logged(caplog).count("run.settled") == 1
    assert logged(caplog).count("launcher.epoch_closed") == 1


def test_a_refused_launch_during_it_is_settled_by_the_next_inventory(ready: Bench, disk: Full) -> None:
    ready.accepting = False
    run_id = ready.start(ready.add())
    disk.on = True
    ready.tell(launch.Refused(run_id, launch.RefuseReason.SPAWN_FAILED))
    assert ready.states() == {run_id: "active"}
    disk.on = False
    ready.turns()
    ready.reconcile()
    view = ready.run(run_id)
    assert (view.state, view.reason) == ("error", "launch_lost")


class BrokenFile(apsw.VFSFile):
    """A database file whose writes fail when the switch is on."""

    def __init__(self, vfs: "BrokenDisk", name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._vfs = vfs

    def xWrite(self, data: bytes, offset: int) -> None:
        self._vfs.check()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._vfs.check()
        super().xSync(flags)


class BrokenDisk(apsw.VFS):
    """SQLite's own file access, with a switch."""

    def __init__(self) -> None:
        self.broken = False
        super().__init__("broken", "", makedefault=True)

    def check(self) -> None:
        if self.broken:
            raise apsw.IOError("injected")

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        return BrokenFile(self, name, flags)


def test_an_io_error_ends_the_process_and_the_restart_recovers(tmp_path: Path) -> None:
    disk = BrokenDisk()
    try:
        bench = Bench(tmp_path)
        job = bench.add()
        disk.broken = True
        bench.post(
            "cron.add", {"schedule": {"kind": "every", "everyMs": 5}, "payload": {"kind": "command", "argv": ["x"]}}
        )
        with pytest.raises(StorageFailed):
            bench.turn()
        first, second = bench.ports.answers
        assert first.ok
        assert second.error is not None
        assert second.error.code == "STORAGE_FAILED"
        disk.broken = False
        bench.crash()
        assert bench.ask("cron.get", JobView, {"id": job.id}).name == job.name
        assert bench.ask("cron.status", CronStatus).jobs == 1
        bench.close()
    finally:
        disk.unregister()


def test_a_message_that_meets_a_bug_is_undone_alone(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = ready.start(ready.add()), ready.start(ready.add())
    real = ledger.finish

    def finish(turn: Turn, run_id: str, finished: Outcome) -> None:
        real(turn, run_id, finished)
        if run_id == bad:
            raise RuntimeError("a bug")

    monkeypatch.setattr(ledger, "finish", finish)
    for run_id in (bad, good):
        ready.report(run_id)
    assert ready.states() == {good: "ok", bad: "active"}
    finished = [view.run_id for view in ready.run_events() if view.state == "ok"]
    assert finished == [good]


def test_a_run_that_cannot_be_launched_is_skipped_and_stops_nobody(
    ready: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = ready.add(name="bad"), ready.add(name="good")
    real = settings.limits

    def limits(config: Config, payload: Payload) -> Limits:
        if payload.argv == ["bad"]:
            raise RuntimeError("a bug")
        return real(config, payload)

    ready.ask("cron.update", JobView, {"id": bad.id, "patch": {"payload": {"argv": ["bad"]}}})
    monkeypatch.setattr(settings, "limits", limits)
    first, second = ready.run_now(bad), ready.run_now(good)
    ready.turns()
    assert ready.states() == {first.run_id: "skipped", second.run_id: "active"}
    assert [sent.run for sent in ready.launches] == [second.run_id]
