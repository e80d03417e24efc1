"""Runs from the outside: executors, cancelling, jobs that change while they run, running by hand."""

import pytest

from cronward.protocol import launch, outcome, run
from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import AddResult, CancelAnswer, JobView, RemoveAnswer, RunAnswer, ServiceStatus
from tests.support.control import Rejected
from tests.support.installation import NEVER
from tests.support.instance import Instance
from tests.support.scheduler_rig import ScriptedExecutor, ScriptedLauncher, made
from tests.support.waiting import wait_until

SOON = {"kind": "every", "everyMs": 50}
"""Due almost at once, and again and again."""


def held(instance: Instance, launcher: ScriptedLauncher, job: JobView | None = None) -> launch.Launch:
    """A run by hand that was launched and accepted."""
    instance.run_now(job or instance.add_command_job(["/bin/true"]))
    return launcher.accept_one()


def cancel(instance: Instance, run_id: str, **params: object) -> str:
    return instance.client().call("run.cancel", CancelAnswer, {"runId": run_id, **params}).result


def update(instance: Instance, job: JobView, patch: dict[str, object], **params: object) -> JobView:
    return instance.client().call("cron.update", JobView, {"id": job.id, "patch": patch, **params})


def test_a_life_of_a_run(scheduler: Instance, ready: ScriptedLauncher) -> None:
    job = scheduler.add_command_job(["/bin/true"])
    sent = held(scheduler, ready, job)
    with ScriptedExecutor(scheduler.paths, sent.run, sent.secret) as executor:
        assert executor.hello() == run.HelloAnswer(sent.run, scheduler.status().instance, None)
        executor.say(run.Progress(sent.run, "running", 5, 0))
        executor.hello()
        view = scheduler.run_view(sent.run)
        assert (view.phase, view.stdout.written if view.stdout else None) == ("running", 5)
        executor.report(times=2)  # as if the first acknowledgement was lost
    view = scheduler.run_view(sent.run)
    assert (view.state, view.exit_code, view.late_outcome) == ("ok", 0, None)
    after = scheduler.client().call("cron.get", JobView, {"id": job.id})
    assert (after.last_run_status, after.state.consecutive_errors, after.status) == ("ok", 0, "ok")


def test_a_wrong_secret_is_dropped(scheduler: Instance, ready: ScriptedLauncher) -> None:
    sent = held(scheduler, ready)
    with ScriptedExecutor(scheduler.paths, sent.run, "0" * 32) as liar:
        liar.say(run.Hello(sent.run, liar.secret, 1))
        liar.say(run.Report(sent.run, liar.secret, outcome.encode(made(sent.run))))
        assert liar.hears_nothing()
    assert scheduler.run_view(sent.run).state == "active"
    assert len(scheduler.wait_event("run.wrong_secret", 2)) == 2
    assert sent.secret not in scheduler.scheduler.log.read_text()


def test_cancelling(scheduler: Instance, ready: ScriptedLauncher) -> None:
    sent = held(scheduler, ready)
    with ScriptedExecutor(scheduler.paths, sent.run, sent.secret) as executor:
        executor.hello()
        assert cancel(scheduler, sent.run, why="enough") == "requested"
        assert "enough" in ready.expect(launch.Cancel).why
        assert "enough" in (executor.expect(run.HelloAnswer).cancel or "")
        assert cancel(scheduler, sent.run) == "requested"
        executor.expect(run.HelloAnswer)
        scheduler.scheduler.kill()
        scheduler.start_scheduler()
        assert "enough" in (executor.hello().cancel or "")  # it was committed
        executor.report(Status.ERROR, Reason.CANCELLED)
    view = scheduler.run_view(sent.run)
    assert (view.state, view.reason) == ("error", "cancelled")
    assert view.cancel is not None
    assert "enough" in view.cancel.why
    assert cancel(scheduler, sent.run) == "too_late"
    with pytest.raises(Rejected, match="RUN_NOT_FOUND"):
        cancel(scheduler, "nothing")


def test_a_task_that_had_ended_well_is_ok_although_it_was_cancelled(
    scheduler: Instance, ready: ScriptedLauncher
) -> None:
    sent = held(scheduler, ready)
    cancel(scheduler, sent.run)
    with ScriptedExecutor(scheduler.paths, sent.run, sent.secret) as executor:
        executor.report()
    assert scheduler.run_view(sent.run).state == "ok"


def test_cancelling_what_waits(scheduler: Instance) -> None:
    run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    assert cancel(scheduler, run_id) == "cancelled"
    assert cancel(scheduler, run_id) == "too_late"
    with ScriptedLauncher(scheduler.paths) as launcher:
        launcher.reconcile()
        assert launcher.new_launches() == []


def test_abandoning(scheduler: Instance, ready: ScriptedLauncher) -> None:
    sent = held(scheduler, ready)
    assert cancel(scheduler, sent.run, abandon=True) == "abandoned"
    view = scheduler.run_view(sent.run)
    assert (view.state, view.reason) == ("error", "abandoned")
    with ScriptedExecutor(scheduler.paths, sent.run, sent.secret) as executor:
        assert executor.hello().cancel is not None
        executor.report()
    assert scheduler.run_view(sent.run).late_outcome is not None


@pytest.mark.parametrize(
    ("action", "reason"),
    [("disable", "disabled"), ("reschedule", "rescheduled"), ("remove", "removed"), ("payload", None)],
)
def test_a_job_changes_while_its_slot_is_queued(
    scheduler: Instance, ready: ScriptedLauncher, action: str, reason: str | None
) -> None:
    ready.beat("not now")
    ready.expect(launch.Beat)
    job = scheduler.add_command_job(["/bin/old"], SOON)
    queued = first_run(scheduler, job)
    match action:
        case "disable":
            update(scheduler, job, {"enabled": False})
        case "reschedule":
            update(scheduler, job, {"schedule": NEVER})
        case "remove":
            scheduler.client().call("cron.remove", RemoveAnswer, {"id": job.id})
        case "payload":
            update(scheduler, job, {"payload": {"argv": ["/bin/new"]}})
    ready.beat()
    if reason is None:
        sent = ready.accept_one()
        assert (sent.run, b"/bin/new" in sent.job) == (queued, True)
    else:
        view = scheduler.run_view(queued)
        assert (view.state, view.reason) == ("skipped", reason)
        assert ready.new_launches() == []


@pytest.mark.parametrize("action", ["disable", "reschedule", "remove", "payload"])
def test_a_job_changes_while_it_runs(scheduler: Instance, ready: ScriptedLauncher, action: str) -> None:
    job = scheduler.add_command_job(["/bin/old"], SOON)
    sent = ready.accept_one()
    match action:
        case "disable":
            update(scheduler, job, {"enabled": False})
        case "reschedule":
            update(scheduler, job, {"schedule": NEVER})
        case "remove":
            answer = scheduler.client().call("cron.remove", RemoveAnswer, {"id": job.id})
            assert answer.cancelling == sent.run
            assert ready.expect(launch.Cancel).run == sent.run
        case "payload":
            update(scheduler, job, {"payload": {"argv": ["/bin/new"]}})
    assert scheduler.run_view(sent.run).state == "active"
    with ScriptedExecutor(scheduler.paths, sent.run, sent.secret) as executor:
        executor.report()
    assert scheduler.run_view(sent.run).state == "ok"
    if action == "payload":
        assert b"/bin/new" in ready.accept_one().job
    else:
        assert ready.new_launches() == []


def first_run(instance: Instance, job: JobView) -> str:
    """The first run of the job, as soon as it is there."""
    wait_until(lambda: bool(instance.runs(job, live=True)), "the job is due")
    return instance.runs(job, live=True)[0].run_id


def test_running_by_hand(scheduler: Instance, ready: ScriptedLauncher) -> None:
    job = scheduler.add_command_job(["/bin/true"])

    def ask(mode: str, **params: object) -> RunAnswer:
        return scheduler.client().call("cron.run", RunAnswer, {"id": job.id, "mode": mode, **params})

    assert ask("due").reason == "not-due"
    answer = ask("force", expectedProcessInstanceId=scheduler.status().instance)
    assert answer.enqueued
    assert ask("force").reason == "already-running"
    sent = ready.accept_one()
    assert sent.run == answer.run_id
    with ScriptedExecutor(scheduler.paths, sent.run, sent.secret) as executor:
        executor.report()
    update(scheduler, job, {"enabled": False})
    assert ask("if-enabled").reason == "disabled"
    assert ask("due").reason == "disabled"
    assert ask("force").enqueued
    with pytest.raises(Rejected, match="INVALID_REQUEST"):
        ask("force", expectedProcessInstanceId="another")
    scheduler.client().call("service.drain", dict[str, object])
    assert ask("force").reason == "stopped"


def test_an_accepted_run_by_hand_survives_a_crash(scheduler: Instance) -> None:
    run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    scheduler.scheduler.kill()
    scheduler.start_scheduler()
    with ScriptedLauncher(scheduler.paths) as launcher:
        launcher.reconcile()
        assert launcher.accept_one().run == run_id


def test_a_request_id_gives_the_first_answer_also_after_a_crash(scheduler: Instance) -> None:
    wanted = scheduler.job(["/bin/true"]) | {"requestId": "once"}
    first = scheduler.client().call("cron.add", JobView, wanted)
    assert scheduler.client().call("cron.add", JobView, wanted) == first
    asked = {"id": first.id, "requestId": "run once"}
    run_id = scheduler.client().call("cron.run", RunAnswer, asked).run_id
    scheduler.scheduler.kill()
    scheduler.start_scheduler()
    assert scheduler.client().call("cron.add", JobView, wanted) == first
    assert scheduler.client().call("cron.run", RunAnswer, asked).run_id == run_id
    assert scheduler.status().jobs == 1
    with pytest.raises(Rejected, match="INVALID_REQUEST"):
        scheduler.client().call("cron.remove", RemoveAnswer, {"id": first.id, "requestId": "once"})


def test_an_edit_of_what_somebody_else_has_changed(scheduler: Instance) -> None:
    job = scheduler.add_command_job(["/bin/true"])
    update(scheduler, job, {"description": "mine"}, expectedConfigRevision=job.config_revision)
    with pytest.raises(Rejected, match="CRON_JOB_CHANGED"):
        update(scheduler, job, {"description": "theirs"}, expectedConfigRevision=job.config_revision)


def test_declaring_jobs(scheduler: Instance) -> None:
    def declare(**fields: object) -> AddResult:
        wanted = scheduler.job(["/bin/true"]) | {"declarationKey": "k", **fields}
        return scheduler.client().call("cron.add", AddResult, wanted)

    first = declare()
    assert (first.created, first.updated) == (True, False)
    again = declare()
    assert (again.created, again.updated, again.job.id) == (False, False, first.job.id)
    edited = declare(schedule={"kind": "cron", "expr": "0 5 * * *"})
    assert (edited.created, edited.updated, edited.job.tz) == (False, True, "UTC")
    assert scheduler.status().jobs == 1


def test_a_pause_survives_a_restart_and_missed_slots_are_one_run(scheduler: Instance, ready: ScriptedLauncher) -> None:
    paused = scheduler.client().call("service.pause", ServiceStatus)
    assert (paused.mode, paused.paused_by) == ("paused", "uid 0")
    job = scheduler.add_command_job(["/bin/true"], SOON)
    scheduler.scheduler.kill()
    scheduler.start_scheduler()
    with ScriptedLauncher(scheduler.paths) as launcher:
        launcher.reconcile()
        assert launcher.new_launches(400) == []
        assert scheduler.status().mode == "paused"
        scheduler.client().call("service.resume", ServiceStatus)
        sent = launcher.accept_one()
        assert launcher.new_launches() == []
        assert [view.run_id for view in scheduler.runs(job, live=True)] == [sent.run]


def test_a_drain_ends_with_the_next_start(scheduler: Instance, ready: ScriptedLauncher) -> None:
    sent = held(scheduler, ready)
    scheduler.client().call("service.drain", dict[str, object], {"kill": True})
    assert ready.expect(launch.Cancel).run == sent.run
    job = scheduler.add_command_job(["/bin/true"], SOON)
    assert ready.new_launches(300) == []
    scheduler.scheduler.kill()
    scheduler.start_scheduler()
    with ScriptedLauncher(scheduler.paths) as launcher:
        launcher.reconcile({sent.run: launch.RunState.HELD})
        launcher.accept_one()
    assert len(scheduler.runs(job, live=True)) == 1


def test_one_shots(scheduler: Instance, ready: ScriptedLauncher) -> None:
    gone = scheduler.add_at(["/bin/true"], scheduler.soon_ms(50))
    sent = ready.accept_one()
    with ScriptedExecutor(scheduler.paths, sent.run, sent.secret) as executor:
        executor.report()
    with pytest.raises(Rejected, match="CRON_JOB_NOT_FOUND"):
        scheduler.client().call("cron.get", JobView, {"id": gone.id})
    stays = scheduler.add_at(["/bin/false"], scheduler.soon_ms(50))
    sent = ready.accept_one()
    ready.say(launch.Exited(sent.run, launch.Gone.INTERRUPTED, None))
    ready.expect(launch.Ack)
    view = scheduler.client().call("cron.get", JobView, {"id": stays.id})
    assert (view.enabled, view.last_run_status, view.state.last_reason) == (False, "error", "interrupted")
