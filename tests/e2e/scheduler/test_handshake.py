"""Scheduler and launcher: epochs, inventories, launches, and what settles a run that was on its way."""

import apsw
import msgspec
import pytest

from cronward.protocol import launch, outcome
from cronward.protocol.launch import GatewayState, Gone, PoolState, RefuseReason, RunState
from cronward.protocol.outcome import Status
from cronward.protocol.views import JobView, RunView
from tests.support.instance import Instance
from tests.support.scheduler_rig import Listener, ScriptedLauncher, made
from tests.support.waiting import now_ms


def active(instance: Instance, launcher: ScriptedLauncher) -> str:
    """A run that was launched and accepted."""
    run_id = instance.run_now(instance.add_command_job(["/bin/true"]))
    assert launcher.accept_one().run == run_id
    return run_id


def state(instance: Instance, run_id: str) -> tuple[str, str | None]:
    view = instance.run_view(run_id)
    return view.state, view.reason


def restart(instance: Instance) -> None:
    instance.scheduler.kill()
    instance.start_scheduler()


def test_each_registration_is_a_new_epoch(scheduler: Instance, launcher: ScriptedLauncher) -> None:
    first = launcher.register()
    second = launcher.register()
    assert (first.epoch, second.epoch) == (1, 2)
    assert first.instance == second.instance == scheduler.status().instance
    assert first.config.ready == 2
    assert scheduler.status().launcher.state == "welcomed"
    launcher.inventory()
    assert scheduler.status().launcher.state == "ready"
    launcher.inventory()  # repeated because the answer was lost: confirmed again
    launcher.beat()
    assert launcher.expect(launch.Beat) == launch.Beat(second.instance, 2)


def test_nothing_is_launched_before_reconciled(scheduler: Instance, launcher: ScriptedLauncher) -> None:
    run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    assert scheduler.run_view(run_id).waiting == "launcher"
    launcher.register()
    assert launcher.new_launches() == []
    launcher.inventory()
    sent = launcher.accept_one()
    assert (sent.run, sent.epoch) == (run_id, 1)


def test_a_launch_carries_the_definition_and_its_limits(scheduler: Instance, ready: ScriptedLauncher) -> None:
    job = scheduler.add_command_job(["/bin/echo", "x"], payload={"timeoutSeconds": 2.5, "leaveChildren": True})
    scheduler.run_now(job)
    sent = ready.accept_one()
    assert b'"/bin/echo"' in sent.job
    assert (sent.limits.timeout_ms, sent.limits.grace_ms, sent.leave_children) == (2500, 5000, True)
    assert sent.kind == "command"
    assert sent.secret


def test_a_run_is_seen_queued_before_it_is_launched(scheduler: Instance, ready: ScriptedLauncher) -> None:
    with Listener(scheduler.paths) as listener:
        listener.wait_for("tick")
        run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
        ready.accept_one()
        assert state(scheduler, run_id) == ("active", None)
        listener.wait_for("tick")
    told = [event.payload for event in listener.events if b'"runId"' in bytes(event.payload)]
    views = [msgspec.json.decode(payload, type=RunView) for payload in told]
    assert [(view.run_id, view.action) for view in views] == [(run_id, "queued"), (run_id, "started")]


def test_capacity_and_window(instance: Instance) -> None:
    instance.start_scheduler({"CRONWARD_CAPACITY_RUNS": "100"})
    with ScriptedLauncher(instance.paths) as launcher:
        launcher.reconcile()
        jobs = [instance.add_command_job(["/bin/true"]) for _ in range(30)]
        runs = [instance.run_now(job) for job in jobs]
        sent = launcher.new_launches()
        assert [one.run for one in sent] == runs[:16]
        launcher.accept(runs[0])
        launcher.say(launch.Refused(runs[1], RefuseReason.SPAWN_FAILED))
        assert [one.run for one in launcher.new_launches()] == runs[16:18]
    instance.scheduler.kill()
    instance.start_scheduler()  # capacity 8 again
    with ScriptedLauncher(instance.paths) as launcher:
        launcher.reconcile(dict.fromkeys(runs, RunState.HELD))
        assert launcher.new_launches() == []  # 17 are active
        for run_id in runs[:14]:
            launcher.say(launch.Exited(run_id, Gone.REPORTED, outcome.encode(made(run_id))))
        assert len(launcher.new_launches()) == 4


@pytest.mark.parametrize(
    ("reason", "recorded"),
    [
        (RefuseReason.STALE_EPOCH, ("error", "launch_lost")),
        (RefuseReason.LEAVING, ("error", "launch_lost")),
        (RefuseReason.CANCELLED, ("skipped", "cancelled")),
        (RefuseReason.SPAWN_FAILED, ("skipped", "spawn_failed")),
        (RefuseReason.GATEWAY_UNAVAILABLE, ("skipped", "gateway_unavailable")),
    ],
)
def test_refused(scheduler: Instance, ready: ScriptedLauncher, reason: RefuseReason, recorded: tuple[str, str]) -> None:
    run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    ready.expect(launch.Launch)
    ready.say(launch.Refused(run_id, reason, "in the test's words"))
    view = scheduler.wait_for_run(run_id)
    assert (view.state, view.reason) == recorded
    assert view.error == "in the test's words"


def test_exited_is_recorded_once_and_acknowledged_each_time(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = active(scheduler, ready)
    said = launch.Exited(run_id, Gone.REPORTED, outcome.encode(made(run_id)))
    for _ in range(3):
        ready.say(said)
        assert ready.expect(launch.Ack).run == run_id
    view = scheduler.run_view(run_id)
    assert (view.state, view.late_outcome) == ("ok", None)


def test_a_contradiction_is_kept_and_logged(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = active(scheduler, ready)
    ready.say(launch.Exited(run_id, Gone.INTERRUPTED, None, "killed"))
    ready.expect(launch.Ack)
    ready.say(launch.Exited(run_id, Gone.REPORTED, outcome.encode(made(run_id))))
    ready.expect(launch.Ack)
    view = scheduler.run_view(run_id)
    assert (view.state, view.reason) == ("error", "interrupted")
    assert view.late_outcome is not None
    scheduler.wait_event("run.late_outcome")


def test_unknown_runs_are_acknowledged(scheduler: Instance, ready: ScriptedLauncher) -> None:
    ready.say(launch.Exited("nobody", Gone.INTERRUPTED, None))
    assert ready.expect(launch.Ack).run == "nobody"
    ready.say(launch.Accepted("nobody", 1), launch.Refused("nobody", RefuseReason.CANCELLED), launch.Forgotten(["x"]))
    assert scheduler.runs(live=True) == []


def test_lost_only_with_proof(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = active(scheduler, ready)
    restart(scheduler)
    with ScriptedLauncher(scheduler.paths) as successor:
        assert successor.register().active == [run_id]
        assert state(scheduler, run_id) == ("active", None)
        successor.inventory({run_id: RunState.SETTLING})
        assert state(scheduler, run_id) == ("active", None)
        successor.reconcile()
        assert state(scheduler, run_id) == ("error", "launch_lost")
    (notice,) = scheduler.wait_event("notice.sent")
    assert notice["runs"] == [run_id]


def test_nothing_is_settled_by_waiting(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = active(scheduler, ready)
    due = scheduler.add_at(["/bin/true"], scheduler.soon_ms(100))
    scheduler.scheduler.kill()
    scheduler.start_scheduler()
    with Listener(scheduler.paths) as listener:
        for _ in range(3):
            listener.wait_for("tick")
    view = scheduler.run_view(run_id)
    assert view.state == "active"
    assert view.unverified_since_ms is not None
    assert view.unverified_since_ms <= now_ms()
    assert scheduler.runs(due, live=True) == []  # and no catch-up before a launcher has spoken


def test_a_stale_epoch_is_asked_to_register_again(scheduler: Instance, launcher: ScriptedLauncher) -> None:
    old = launcher.reconcile()
    with ScriptedLauncher(scheduler.paths) as successor:
        successor.reconcile()
        beat = launch.Heartbeat(old.instance, old.epoch, GatewayState.NONE, PoolState())
        for stale in (beat, launch.Inventory(old.instance, old.epoch, {})):
            launcher.say(stale)
            launcher.expect(launch.RegisterAgain)
        run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
        assert successor.accept_one().run == run_id
        launcher.say(launch.Leaving(old.instance, old.epoch))
        launcher.expect(launch.Left)
        second = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
        assert successor.accept_one().run == second
    assert launcher.new_launches() == []


def test_another_schedulers_instance_is_asked_to_register_again(scheduler: Instance, ready: ScriptedLauncher) -> None:
    restart(scheduler)
    ready.beat()
    ready.expect(launch.RegisterAgain)
    assert ready.reconcile().epoch == 1


def test_leaving_touches_no_run(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = active(scheduler, ready)
    assert ready.welcome is not None
    ready.say(launch.Leaving(ready.welcome.instance, ready.welcome.epoch))
    ready.expect(launch.Left)
    waiting = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    assert ready.new_launches() == []
    assert scheduler.status().launcher.state == "leaving"
    assert (state(scheduler, run_id), state(scheduler, waiting)) == (("active", None), ("queued", None))
    with ScriptedLauncher(scheduler.paths) as successor:
        successor.reconcile({run_id: RunState.HELD})
        assert successor.accept_one().run == waiting


def test_a_launcher_that_cannot_start_runs_is_not_asked_to(scheduler: Instance, ready: ScriptedLauncher) -> None:
    ready.beat("no space for run directories")
    ready.expect(launch.Beat)
    run_id = scheduler.run_now(scheduler.add_command_job(["/bin/true"]))
    assert ready.new_launches() == []
    assert "no space" in (scheduler.run_view(run_id).waiting or "")
    ready.beat()
    assert ready.accept_one().run == run_id


def test_after_another_boot_runs_are_interrupted_not_lost(scheduler: Instance, ready: ScriptedLauncher) -> None:
    run_id = active(scheduler, ready)
    scheduler.scheduler.kill()
    edit(scheduler, "UPDATE runs SET boot_id = 'an earlier boot'")
    scheduler.start_scheduler()
    with ScriptedLauncher(scheduler.paths) as successor:
        successor.reconcile()
        assert state(scheduler, run_id) == ("error", "interrupted")


def test_an_outcome_of_before_the_restart_is_recorded_after_it(scheduler: Instance, ready: ScriptedLauncher) -> None:
    job: JobView = scheduler.add_command_job(["/bin/true"])
    run_id = scheduler.run_now(job)
    ready.accept_one()
    restart(scheduler)
    ready.say(launch.Exited(run_id, Gone.REPORTED, outcome.encode(made(run_id, Status.ERROR))))
    assert ready.expect(launch.Ack).run == run_id  # though no launcher has registered in this life
    assert state(scheduler, run_id) == ("error", "exit_code")
    assert ready.reconcile().active == []


def edit(instance: Instance, sql: str) -> None:
    """Changes the database while no scheduler has it."""
    connection = apsw.Connection(str(instance.paths.database))
    connection.execute(sql)
    connection.close()
