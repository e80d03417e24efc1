"""Editing, removing and running jobs, while nothing, a queued or an active run is there."""

import datetime as dt

import pytest

from cronward.protocol import launch
from cronward.protocol.job import Every
from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import (
    AddResult,
    CancelAnswer,
    DrainAnswer,
    JobView,
    RemoveAnswer,
    RunAnswer,
    ServiceStatus,
)
from tests.support.scheduler_bench import Bench, Refusal

MINUTE = 60_000
OTHER = {"kind": "every", "everyMs": 7 * MINUTE}
PAYLOAD = {"kind": "command", "argv": ["/bin/true"]}


def due_and_queued(bench: Bench) -> tuple[JobView, str]:
    """A job with a queued scheduled run."""
    job = bench.every(MINUTE)
    bench.post("service.drain")
    bench.turn()
    bench.post("service.resume")
    bench.turn(MINUTE)
    ((run_id,),) = bench.sql("SELECT run_id FROM runs WHERE job_id = ? AND state = 'queued'", job.id)
    return job, str(run_id)


def due_and_active(bench: Bench) -> tuple[JobView, str]:
    job, run_id = due_and_queued(bench)
    bench.turn()
    assert bench.states()[run_id] == "active"
    return job, run_id


def reason(bench: Bench, run_id: str) -> tuple[str, str | None]:
    view = bench.run(run_id)
    return view.state, view.reason


@pytest.mark.parametrize(
    ("patch", "recorded"),
    [
        ({"enabled": False}, "disabled"),
        ({"schedule": OTHER}, "rescheduled"),
        ({"enabled": False, "schedule": OTHER}, "disabled"),
    ],
)
def test_a_queued_slot_of_the_old_schedule_is_skipped(ready: Bench, patch: dict[str, object], recorded: str) -> None:
    job, run_id = due_and_queued(ready)
    ready.ask("cron.update", JobView, {"id": job.id, "patch": patch})
    assert reason(ready, run_id) == ("skipped", recorded)
    assert ready.job(job).last_run_status is None  # the job has not run


def test_another_payload_is_what_the_queued_run_starts_with(ready: Bench) -> None:
    job, run_id = due_and_queued(ready)
    ready.post("cron.update", {"id": job.id, "patch": {"payload": {"argv": ["/bin/new"]}}})
    ready.turn()
    assert [(sent.run, b"/bin/new" in sent.job) for sent in ready.launches] == [(run_id, True)]


def test_an_active_run_keeps_what_it_was_launched_with(ready: Bench) -> None:
    job, run_id = due_and_active(ready)
    for patch in ({"payload": {"argv": ["/bin/new"]}}, {"schedule": OTHER}, {"enabled": False}):
        ready.ask("cron.update", JobView, {"id": job.id, "patch": patch})
    assert reason(ready, run_id) == ("active", None)
    ready.report(run_id, Status.ERROR)
    view = ready.job(job)
    assert (view.enabled, view.next_run_at_ms, view.last_run_status) == (False, None, "error")
    assert isinstance(view.schedule, Every)
    assert view.schedule.every_ms == 7 * MINUTE


def test_an_edit_can_cancel(ready: Bench) -> None:
    job, run_id = due_and_active(ready)
    ready.ask("cron.update", JobView, {"id": job.id, "patch": {"enabled": False}, "cancel": True})
    assert [order.run for order in ready.orders(launch.Cancel)] == [run_id]


def test_removing_takes_the_queued_run_back(ready: Bench) -> None:
    job, run_id = due_and_queued(ready)
    answer = ready.ask("cron.remove", RemoveAnswer, {"id": job.id})
    assert (answer.removed, answer.cancelling) == (True, None)
    assert reason(ready, run_id) == ("skipped", "removed")


def test_removing_asks_the_active_run_to_end_and_keeps_its_result(ready: Bench) -> None:
    job, run_id = due_and_active(ready)
    answer = ready.ask("cron.remove", RemoveAnswer, {"id": job.id})
    assert answer.cancelling == run_id
    ready.report(run_id, Status.ERROR, Reason.CANCELLED)
    assert reason(ready, run_id) == ("error", "cancelled")
    with pytest.raises(Refusal, match="CRON_JOB_NOT_FOUND"):
        ready.job(job)


def test_a_run_by_hand_survives_a_disable(ready: Bench) -> None:
    job = ready.add()
    run_id = str(ready.run_now(job).run_id)
    ready.post("cron.update", {"id": job.id, "patch": {"enabled": False}})
    ready.turns()
    assert ready.states()[run_id] == "active"


def test_modes_of_running_by_hand(ready: Bench) -> None:
    job = ready.every(MINUTE, enabled=False)
    assert ready.run_now(job, "due").reason == "disabled"
    assert ready.run_now(job, "if-enabled").reason == "disabled"
    run_id = ready.run_now(job, "force").run_id
    for mode in ("force", "due", "if-enabled"):
        ready.ask("cron.update", JobView, {"id": job.id, "patch": {"enabled": True}})
        assert ready.run_now(job, mode).reason == "already-running"
    ready.turn()
    ready.report(str(run_id))
    assert ready.run_now(job, "if-enabled").enqueued
    view = ready.job(job)
    assert view.next_run_at_ms == ready.clock.wall + MINUTE  # running by hand leaves the schedule alone
    with pytest.raises(Refusal, match="INVALID_REQUEST: mode"):
        ready.run_now(job, "maybe")


def test_a_run_by_hand_of_a_damaged_job_is_a_skipped_one(ready: Bench) -> None:
    job = ready.add()
    ready.sql("UPDATE jobs SET definition = '{}'")
    answer = ready.run_now(job)
    assert (answer.ran, answer.reason) == (False, "invalid-spec")
    assert list(ready.states().values()) == ["skipped"]


def test_the_caller_may_insist_on_a_scheduler(ready: Bench) -> None:
    job = ready.add()
    wanted = {"id": job.id, "expectedProcessInstanceId": ready.world.instance}
    assert ready.ask("cron.run", RunAnswer, wanted).enqueued
    with pytest.raises(Refusal, match="INVALID_REQUEST"):
        ready.ask("cron.run", RunAnswer, wanted | {"expectedProcessInstanceId": "another"})


def test_cancel(ready: Bench) -> None:
    ready.accepting = False
    job = ready.add()
    queued = str(ready.run_now(job).run_id)
    answer = ready.ask("run.cancel", CancelAnswer, {"runId": queued, "why": "no"})
    assert (answer.result, reason(ready, queued)) == ("cancelled", ("skipped", "cancelled"))
    assert ready.ask("run.cancel", CancelAnswer, {"runId": queued}).result == "too_late"
    active = ready.start(job)
    for why in ("first", "second"):
        assert ready.ask("run.cancel", CancelAnswer, {"runId": active, "why": why}).result == "requested"
    view = ready.run(active)
    assert view.cancel is not None
    assert "first" in view.cancel.why
    orders = ready.orders(launch.Cancel)
    for _ in range(11):
        ready.turn(1000)
    assert len(ready.orders(launch.Cancel)) > len(orders)  # repeated until the run is over
    ready.report(active, Status.OK)  # it had ended well already
    assert reason(ready, active) == ("ok", None)
    told = len(ready.orders(launch.Cancel))
    for _ in range(6):
        ready.turn(1000)
    assert len(ready.orders(launch.Cancel)) == told
    with pytest.raises(Refusal, match="RUN_NOT_FOUND"):
        ready.ask("run.cancel", CancelAnswer, {"runId": "nothing"})


def test_abandoning_ends_the_record_whatever_the_process_does(ready: Bench) -> None:
    job, run_id = due_and_active(ready)
    assert ready.ask("run.cancel", CancelAnswer, {"runId": run_id, "abandon": True}).result == "abandoned"
    assert reason(ready, run_id) == ("error", "abandoned")
    assert ready.job(job).state.consecutive_errors == 0
    ready.turn(MINUTE)
    ready.turn()
    assert list(ready.states().values()) == ["error", "active"]
    ready.report(run_id)
    assert ready.run(run_id).late_outcome is not None


def test_drain_can_end_what_runs(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    queued = ready.add()
    answer = ready.ask("service.drain", DrainAnswer)
    assert (answer.active, answer.queued, answer.cancelled) == (1, 0, 0)
    assert ready.run_now(queued).reason == "stopped"
    assert ready.ask("service.drain", DrainAnswer, {"kill": True}).cancelled == 1
    assert [order.run for order in ready.orders(launch.Cancel)] == [run_id]


def test_an_edit_can_insist_on_a_revision(ready: Bench) -> None:
    job = ready.add()
    edit = {"id": job.id, "expectedConfigRevision": job.config_revision, "patch": {"description": "new"}}
    edited = ready.ask("cron.update", JobView, edit)
    assert edited.config_revision != job.config_revision
    with pytest.raises(Refusal, match="CRON_JOB_CHANGED") as caught:
        ready.ask("cron.update", JobView, edit)
    assert caught.value.error.details["actualConfigRevision"] == edited.config_revision


def test_a_request_id_is_answered_once_and_for_all(ready: Bench) -> None:
    wanted = {"schedule": OTHER, "payload": PAYLOAD, "requestId": "once"}
    first = ready.ask("cron.add", JobView, wanted)
    again = ready.ask("cron.add", JobView, wanted)
    assert again == first
    ready.crash()
    assert ready.ask("cron.add", JobView, wanted) == first
    assert ready.sql("SELECT count(*) FROM jobs") == [(1,)]
    with pytest.raises(Refusal, match="INVALID_REQUEST: requestId"):
        ready.ask("cron.run", RunAnswer, {"id": first.id, "requestId": "once"})


def test_a_request_that_failed_may_be_asked_again(ready: Bench) -> None:
    with pytest.raises(Refusal):
        ready.ask("cron.add", JobView, {"schedule": {"kind": "nonsense"}, "payload": PAYLOAD, "requestId": "x"})
    assert ready.ask("cron.add", JobView, {"schedule": OTHER, "payload": PAYLOAD, "requestId": "x"}).enabled


def test_a_declared_one_shot_converges_however_its_time_is_written(ready: Bench) -> None:
    at_ms = ready.clock.wall + 60_000
    written = dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted = {"declarationKey": "once", "name": "once", "schedule": {"kind": "at", "at": written}, "payload": PAYLOAD}
    made = ready.ask("cron.add", AddResult, wanted | {"deleteAfterRun": False})
    for _ in range(2):
        again = ready.ask("cron.add", AddResult, wanted | {"deleteAfterRun": False})
        assert (again.created, again.updated, again.job.id) == (False, False, made.job.id)
        ready.turn(3_600_000)  # and so it does when its time is long over
    ready.turns()
    for run_id, state in ready.states().items():
        if state == "active":
            ready.report(run_id)
    again = ready.ask("cron.add", AddResult, wanted | {"deleteAfterRun": False, "enabled": True})
    assert (again.created, again.updated, again.job.enabled) == (False, False, False)


def test_declaring_a_job_again_brings_it_in_line(ready: Bench) -> None:
    wanted = {"declarationKey": "backup", "name": "first", "schedule": OTHER, "payload": PAYLOAD, "description": "d"}
    made = ready.ask("cron.add", AddResult, wanted)
    assert (made.created, made.updated) == (True, False)
    events = len(ready.ports.events)
    same = ready.ask("cron.add", AddResult, wanted | {"name": "second", "description": "e"})
    assert (same.created, same.updated, same.job.id) == (False, False, made.job.id)
    assert len(ready.ports.events) == events
    assert (same.job.name, same.job.description) == ("first", "d")
    later = ready.ask("cron.add", AddResult, wanted | {"schedule": {"kind": "every", "everyMs": MINUTE}})
    assert (later.created, later.updated) == (False, True)
    assert later.job.next_run_at_ms == ready.clock.wall + MINUTE
    off = ready.ask("cron.add", AddResult, wanted | {"enabled": False})
    assert not off.job.enabled
    assert not ready.ask("cron.add", AddResult, wanted).job.enabled  # only when it is said


def test_an_anchor_survives_what_does_not_concern_it(ready: Bench) -> None:
    job = ready.every(MINUTE)
    ready.turn(30_000)
    patch = {"schedule": {"kind": "every", "everyMs": MINUTE}, "description": "x"}
    edited = ready.ask("cron.update", JobView, {"id": job.id, "patch": patch})
    assert edited.schedule == job.schedule
    assert edited.next_run_at_ms == job.next_run_at_ms


def test_a_job_is_found_by_a_name_that_only_it_has(ready: Bench) -> None:
    job = ready.add(name="Backup")
    assert ready.ask("cron.get", JobView, {"id": "backup"}).id == job.id
    ready.add(name="BACKUP")
    with pytest.raises(Refusal, match="CRON_JOB_AMBIGUOUS"):
        ready.ask("cron.get", JobView, {"id": "backup"})
    assert ready.ask("cron.get", JobView, {"jobId": job.id}).id == job.id
    for bad in ({}, {"id": job.id, "jobId": job.id}):
        with pytest.raises(Refusal, match="INVALID_REQUEST"):
            ready.ask("cron.get", JobView, bad)


def test_who_changed_what_is_kept(ready: Bench) -> None:
    job = ready.add()
    ready.ask("cron.update", JobView, {"id": job.id, "patch": {"description": "x"}})
    ready.ask("cron.remove", RemoveAnswer, {"id": job.id})
    rows = ready.sql("SELECT action, uid, pid FROM changes WHERE job_id = ? ORDER BY change", job.id)
    assert rows == [("added", 0, 77), ("updated", 0, 77), ("removed", 0, 77)]


def test_a_name_that_two_jobs_have_is_said(ready: Bench) -> None:
    first = ready.every(60_000, name="backup")
    second = ready.every(60_000, name="Backup")
    assert (first.name_shared, second.name_shared) == (False, True)
    renamed = ready.ask("cron.update", JobView, {"id": second.id, "patch": {"name": "other"}})
    assert not renamed.name_shared


def test_who_holds_the_service_and_since_when(ready: Bench) -> None:
    def held() -> tuple[str | None, int | None]:
        status = ready.ask("service.status", ServiceStatus)
        return status.held_by, status.held_at_ms

    assert held() == (None, None)
    ready.ask("service.pause", dict)
    paused = ("uid 0", ready.clock.wall)
    ready.turn(1_000)
    assert held() == paused
    ready.ask("service.drain", dict)
    drained = ("uid 0", ready.clock.wall)
    ready.turn(1_000)
    assert held() == drained
    ready.crash()  # the drain is over, the pause is not
    assert held() == paused
    ready.ask("service.resume", dict)
    assert held() == (None, None)


def test_a_name_of_many_jobs_lists_some(ready: Bench) -> None:
    made = [ready.every(60_000, name="many").id for _ in range(5)]
    with pytest.raises(Refusal, match=f"{made[0]}, {made[1]}, {made[2]} and others"):
        ready.ask("cron.get", JobView, {"id": "many"})
