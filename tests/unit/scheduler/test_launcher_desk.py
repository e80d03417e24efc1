"""The handshake applied to the ledger: what settles a run, what does not, and who is answered."""

import pytest

from cronward.protocol import failpoints, launch, outcome
from cronward.protocol.launch import Gone, RefuseReason, RunState
from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import ServiceStatus
from cronward.scheduler.admission import UNANSWERED_MAX
from tests.support.scheduler_bench import LAUNCHER, Bench

OTHER = [b"other"]


def active(bench: Bench) -> str:
    """A run that was launched and accepted."""
    run_id = bench.start(bench.add())
    assert bench.states()[run_id] == "active"
    return run_id


def found(bench: Bench, run_id: str) -> tuple[str, str | None]:
    view = bench.run(run_id)
    return view.state, view.reason


@pytest.mark.parametrize("seen", [RunState.HELD, RunState.WAITING, RunState.SETTLING, RunState.OVER])
def test_a_run_that_left_a_trace_stays_active(ready: Bench, seen: RunState) -> None:
    run_id = active(ready)
    ready.crash()
    ready.reconcile({run_id: seen})
    ready.turn(3_600_000)
    assert found(ready, run_id) == ("active", None)


def test_absent_in_a_newer_epoch_is_the_one_proof_of_a_lost_launch(ready: Bench) -> None:
    run_id = active(ready)
    ready.reconcile()
    assert found(ready, run_id) == ("error", "launch_lost")


def test_absent_in_the_epoch_of_its_launch_proves_nothing(ready: Bench) -> None:
    welcome = ready.register()
    job = ready.add()
    ready.tell(launch.Inventory(welcome.instance, welcome.epoch, {}))
    run_id = ready.start(job)
    ready.tell(launch.Inventory(welcome.instance, welcome.epoch, {run_id: RunState.ABSENT}))
    assert found(ready, run_id) == ("active", None)


def test_a_run_that_the_inventory_does_not_name_stays_active(ready: Bench) -> None:
    run_id = active(ready)
    welcome = ready.register()
    assert welcome.active == [run_id]
    ready.tell(launch.Inventory(welcome.instance, welcome.epoch, {}))
    assert found(ready, run_id) == ("active", None)


def test_after_another_boot_nothing_is_lost_only_interrupted(ready: Bench) -> None:
    run_id = active(ready)
    ready.boot_id = "boot-b"
    ready.crash()
    ready.reconcile()
    assert found(ready, run_id) == ("error", "interrupted")


def test_time_settles_nothing(ready: Bench) -> None:
    run_id = active(ready)
    ready.crash()
    for _ in range(50):
        ready.turn(86_400_000)
    view = ready.run(run_id)
    assert view.state == "active"
    assert view.unverified_since_ms is not None


@pytest.mark.parametrize(
    ("reason", "state", "recorded"),
    [
        (RefuseReason.STALE_EPOCH, "error", "launch_lost"),
        (RefuseReason.LEAVING, "error", "launch_lost"),
        (RefuseReason.CANCELLED, "skipped", "cancelled"),
        (RefuseReason.SPAWN_FAILED, "skipped", "spawn_failed"),
        (RefuseReason.GATEWAY_UNAVAILABLE, "skipped", "gateway_unavailable"),
    ],
)
def test_refusals(ready: Bench, reason: RefuseReason, state: str, recorded: str) -> None:
    ready.accepting = False
    run_id = active(ready)
    ready.tell(launch.Refused(run_id, reason, "because"))
    assert found(ready, run_id) == (state, recorded)
    assert ready.world.link.unanswered == {}
    errors = ready.sql("SELECT consecutive_errors FROM job_state")
    assert errors == [(0,)]


def test_every_reason_of_refusal_is_known(ready: Bench) -> None:
    from cronward.scheduler.launcher_desk import _REFUSALS

    assert set(_REFUSALS) == set(RefuseReason)


def test_exited_with_an_outcome_is_recorded_and_acknowledged_each_time(ready: Bench) -> None:
    run_id = active(ready)
    exited = launch.Exited(run_id, Gone.REPORTED, outcome.encode(ready.outcome(run_id)))
    ready.tell(exited, exited)
    ready.tell(exited)
    assert found(ready, run_id) == ("ok", None)
    assert ready.orders(launch.Ack) == [launch.Ack(run_id)] * 3
    assert ready.run(run_id).late_outcome is None


def test_exited_without_an_outcome_is_interrupted_and_the_jobs_counters_stay(ready: Bench) -> None:
    job = ready.add()
    run_id = ready.start(job)
    ready.tell(launch.Exited(run_id, Gone.INTERRUPTED, None, "killed by signal 9", 2))
    view = ready.run(run_id)
    assert (view.state, view.reason) == ("error", "interrupted")
    assert view.error is not None
    assert "signal 9" in view.error
    assert "2 of its processes" in view.error
    assert ready.job(job).state.consecutive_errors == 0


def test_reports_of_unknown_runs_are_acknowledged(ready: Bench) -> None:
    ready.tell(launch.Exited("nobody", Gone.INTERRUPTED, None), launch.Accepted("nobody", 1))
    ready.tell(launch.Refused("nobody", RefuseReason.SPAWN_FAILED))
    assert ready.orders(launch.Ack) == [launch.Ack("nobody")]
    assert ready.states() == {}


def test_a_contradiction_is_kept_beside_what_is_recorded(ready: Bench) -> None:
    run_id = active(ready)
    ready.tell(launch.Exited(run_id, Gone.INTERRUPTED, None))
    ready.report(run_id, Status.OK)
    view = ready.run(run_id)
    assert (view.state, view.reason) == ("error", "interrupted")
    assert view.late_outcome is not None
    assert "ok" in view.late_outcome
    ready.report(run_id, Status.ERROR, Reason.SIGNAL)
    assert ready.run(run_id).late_outcome == view.late_outcome  # the first


def test_at_most_sixteen_launches_are_unanswered(bench: Bench) -> None:
    bench.config = bench.config.__class__(capacity=bench.config.capacity.__class__(runs=100))
    bench.crash()
    bench.reconcile()
    bench.accepting = False
    jobs = [bench.add() for _ in range(40)]
    for job in jobs:
        bench.run_now(job)
    bench.turns(5)
    assert len(bench.launches) == UNANSWERED_MAX
    bench.tell(
        launch.Accepted(bench.launches[0].run, 1), launch.Refused(bench.launches[1].run, RefuseReason.SPAWN_FAILED)
    )
    bench.turns()
    assert len(bench.launches) == UNANSWERED_MAX + 2
    assert len({sent.run for sent in bench.launches}) == UNANSWERED_MAX + 2


def test_no_transaction_both_requests_and_launches(ready: Bench) -> None:
    job = ready.add()
    run_id = str(ready.run_now(job).run_id)
    assert (ready.states(), ready.launches) == ({run_id: "queued"}, [])
    ready.turn()
    assert [sent.run for sent in ready.launches] == [run_id]


def test_failpoints_stand_around_the_commits_of_their_facts(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[tuple[str, str | None]] = []
    job = ready.add()

    def hit(name: str) -> None:
        states = ready.sql("SELECT state FROM runs")
        passed.append((name, str(states[0][0]) if states and not ready.connection.in_transaction else None))

    monkeypatch.setattr(failpoints, "hit", hit)
    run_id = ready.start(job)
    ready.report(run_id)
    assert passed == [
        ("scheduler.before_request_commit", None),
        ("scheduler.after_request_commit", "queued"),
        ("scheduler.after_active_commit", "active"),
        ("scheduler.before_outcome_commit", None),
        ("scheduler.after_outcome_commit", "ok"),
    ]


def test_capacity(ready: Bench) -> None:
    for job in [ready.add() for _ in range(12)]:
        ready.run_now(job)
    ready.turns(5)
    assert len(ready.launches) == 8
    ready.report(ready.launches[3].run)
    ready.turn()
    assert len(ready.launches) == 9


def test_the_queue_goes_by_due_time_then_arrival_then_job_order(bench: Bench) -> None:
    first, second, third = bench.add(name="a"), bench.add(name="b"), bench.add(name="c")
    bench.clock.advance(10)
    order = [third, first, second]
    for job in order[:1]:
        bench.run_now(job)
    bench.clock.advance(10)
    for job in (second, first):
        bench.post("cron.run", {"id": job.id})
    bench.turn()
    bench.reconcile()
    bench.turns()
    assert [bench.run(sent.run).job_name for sent in bench.launches] == ["c", "a", "b"]


def test_a_launcher_that_can_start_nothing_gets_nothing(ready: Bench) -> None:
    job = ready.add()
    ready.cannot_start = "no space for run directories"
    ready.turn(2000)
    run_id = str(ready.run_now(job).run_id)
    ready.turns()
    view = ready.run(run_id)
    assert (view.state, ready.launches) == ("queued", [])
    assert view.waiting is not None
    assert "no space" in view.waiting
    ready.cannot_start = None
    ready.turn(2000)
    ready.turns()
    assert [sent.run for sent in ready.launches] == [run_id]


def test_a_launch_that_cannot_be_sent_closes_the_epoch_and_is_not_sent_again(ready: Bench) -> None:
    one, two = ready.add(), ready.add()
    ready.ports.launch_wire.broken = True
    ready.run_now(one)
    ready.run_now(two)
    ready.turns()
    ready.ports.launch_wire.broken = False
    assert ready.world.link.state == "absent"
    assert ready.launches == []
    states = ready.states()
    ready.reconcile()
    ready.turns()
    for run_id, state in states.items():
        if state == "active":
            assert found(ready, run_id) == ("error", "launch_lost")
        else:
            assert [sent.run for sent in ready.launches] == [run_id]


def test_an_unanswered_launch_closes_the_epoch(ready: Bench) -> None:
    ready.accepting = False
    run_id = active(ready)
    for _ in range(20):
        ready.turn(2000)
    assert ready.world.link.state == "absent"
    assert ready.orders(launch.RegisterAgain)
    assert found(ready, run_id) == ("active", None)
    ready.reconcile({run_id: RunState.WAITING})
    ready.turns()
    assert len(ready.launches) == 1


def test_an_epoch_that_is_overdue_takes_no_launch_with_it(ready: Bench) -> None:
    job = ready.add()
    ready.turns()
    ready.post("cron.run", {"id": job.id})
    ready.turn(9_500, silent=True)
    ready.clock.advance(1_000)
    ready.turn(silent=True)
    assert ready.world.link.state == "absent"
    assert list(ready.states().values()) == ["queued"]


def test_leaving_ends_the_epoch_and_touches_no_run(ready: Bench) -> None:
    run_id = active(ready)
    queued = str(ready.run_now(ready.add()).run_id)
    link = ready.world.link
    ready.tell(launch.Leaving(link.instance, link.epoch))
    assert ready.orders(launch.Left) == [launch.Left(link.instance, link.epoch)]
    ready.turns()
    assert ready.states() == {run_id: "active", queued: "queued"}
    ready.tell(launch.Leaving(link.instance, link.epoch))
    assert len(ready.orders(launch.Left)) == 2
    ready.reconcile({run_id: RunState.HELD}, OTHER)
    ready.turns()
    assert ready.states() == {run_id: "active", queued: "active"}


def test_a_late_goodbye_of_an_earlier_launcher_diverts_nothing(ready: Bench) -> None:
    old = ready.world.link.epoch
    ready.reconcile(address=OTHER)
    ready.tell(launch.Leaving(ready.world.instance, old))
    assert ready.orders(launch.Left) == [launch.Left(ready.world.instance, old)]
    ready.accepting = False
    run_id = active(ready)
    assert [sent.run for sent in ready.orders(launch.Launch, OTHER)] == [run_id]
    assert ready.orders(launch.Launch, LAUNCHER) == []


def test_each_launcher_is_answered_where_it_asked(ready: Bench) -> None:
    ready.ports.batch.launch.append((OTHER, launch.encode(launch.Exited("x", Gone.INTERRUPTED, None))))
    ready.turn()
    assert ready.orders(launch.Ack, OTHER) == [launch.Ack("x")]
    assert ready.orders(launch.Ack, LAUNCHER) == []


def test_a_launcher_of_an_old_epoch_is_asked_to_register(ready: Bench) -> None:
    link = ready.world.link
    beat = launch.Heartbeat(link.instance, link.epoch, launch.GatewayState.NONE, launch.PoolState())
    ready.reconcile(address=OTHER)
    ready.tell(beat)
    assert ready.orders(launch.RegisterAgain) == [launch.RegisterAgain()]
    assert ready.world.link.address == OTHER


def test_a_word_that_crossed_a_welcome_starts_no_new_epoch(ready: Bench) -> None:
    one = ready.register()
    two = ready.register()
    ready.tell(launch.Inventory(one.instance, one.epoch, {}))
    assert ready.orders(launch.RegisterAgain) == []
    ready.tell(launch.Inventory(two.instance, two.epoch, {}))
    assert ready.orders(launch.Reconciled)[-1] == launch.Reconciled(two.instance, two.epoch)
    assert ready.world.link.state == "ready"


def test_after_a_reconnection_launches_follow_the_last_heartbeat(ready: Bench) -> None:
    link = ready.world.link
    beat = launch.Heartbeat(link.instance, link.epoch, launch.GatewayState.NONE, launch.PoolState())
    ready.tell(beat, address=OTHER)
    ready.accepting = False
    run_id = active(ready)
    assert [sent.run for sent in ready.orders(launch.Launch, OTHER)] == [run_id]


def test_an_inventory_is_confirmed_again_and_applied_once(ready: Bench) -> None:
    run_id = active(ready)
    welcome = ready.register()
    ready.tell(launch.Inventory(welcome.instance, welcome.epoch, {run_id: RunState.HELD}))
    ready.tell(launch.Inventory(welcome.instance, welcome.epoch, {run_id: RunState.ABSENT}))
    assert ready.orders(launch.Reconciled)[-2:] == [launch.Reconciled(welcome.instance, welcome.epoch)] * 2
    assert found(ready, run_id) == ("active", None)


def test_the_answer_to_register_names_the_configuration(ready: Bench) -> None:
    assert ready.register().config == ready.world.settings.launcher_config()


def test_a_reload_reaches_the_launcher(ready: Bench) -> None:
    ready.world.settings.path.write_text("[executors]\nready = 7\n")
    status = ready.ask("service.reload", ServiceStatus)
    assert (status.config_version, status.config_error) == (2, None)
    assert [sent.config.ready for sent in ready.orders(launch.Configure)] == [7]


def test_forgotten_runs_go_when_their_directories_are_gone(ready: Bench) -> None:
    run_id = active(ready)
    ready.report(run_id)
    ready.turn(8 * 86_400_000)
    ready.turn(1000)
    assert run_id in ready.orders(launch.Forget)[-1].runs
    assert run_id in ready.states()
    ready.tell(launch.Forgotten([run_id, "unknown"]))
    assert ready.states() == {}


def test_a_live_run_is_never_forgotten(ready: Bench) -> None:
    run_id = active(ready)
    ready.turn(30 * 86_400_000)
    ready.turn(1000)
    ready.tell(launch.Forgotten([run_id]))
    assert ready.states() == {run_id: "active"}


def test_garbage_from_a_launcher_changes_nothing(ready: Bench) -> None:
    whole = launch.encode(launch.Exited("x", Gone.REPORTED, b"not an outcome"))
    for data in (b"", b"\x00", b"\xff" * 100, whole, whole[:-3], launch.encode(launch.Ack("x"))):
        ready.ports.batch.launch.append((LAUNCHER, data))
    run_id = active(ready)
    assert found(ready, run_id) == ("active", None)
