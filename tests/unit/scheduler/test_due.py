"""Due decisions: one run per job however much was missed, consumed slots, one-shots, flagged jobs."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.job import Command, Cron, Definition, Every
from cronward.protocol.launch import RunState
from cronward.protocol.outcome import Status
from cronward.protocol.views import JobView, WhyView
from cronward.scheduler import due, ledger
from cronward.scheduler.rows import JobRow, find_job
from cronward.scheduler.world import Turn
from tests.support.scheduler_bench import Bench, Refusal

MINUTE = 60_000


def runs_of(bench: Bench, job: JobView) -> list[tuple[int, str]]:
    """(slot, state) of every run of the job, oldest first."""
    rows = bench.sql("SELECT slot_ms, state FROM runs WHERE job_id = ? ORDER BY arrival", job.id)
    return [(int(str(slot)), str(state)) for slot, state in rows]


def due_ms(bench: Bench, job: JobView) -> int | None:
    ((value,),) = bench.sql("SELECT next_due_ms FROM job_state JOIN jobs USING (position) WHERE job_id = ?", job.id)
    return value if isinstance(value, int) else None


def finish(bench: Bench, job: JobView, status: Status = Status.OK) -> str:
    ((run_id,),) = bench.sql("SELECT run_id FROM runs WHERE job_id = ? AND state = 'active'", job.id)
    bench.report(str(run_id), status)
    return str(run_id)


def test_a_slot_is_requested_by_its_own_time_and_seen_before_it_is_launched(ready: Bench) -> None:
    job = ready.every(MINUTE)
    slot = ready.clock.wall + MINUTE
    assert due_ms(ready, job) == slot
    ready.turn(MINUTE - 1)
    assert runs_of(ready, job) == []
    ready.turn(5)
    assert runs_of(ready, job) == [(slot, "queued")]
    assert ready.launches == []
    ready.turn()
    assert runs_of(ready, job) == [(slot, "active")]
    seen = [view.state for view in ready.run_events()]
    assert seen == ["queued", "active"]
    assert [sent.run for sent in ready.launches] == list(ready.states())


def test_what_was_missed_is_one_run_and_the_next_slot_is_to_come(ready: Bench) -> None:
    job = ready.every(MINUTE)
    first = ready.clock.wall + MINUTE
    ready.turn(10 * MINUTE + 7)
    assert runs_of(ready, job) == [(first + 9 * MINUTE, "queued")]
    assert due_ms(ready, job) == first + 10 * MINUTE


def test_nothing_is_caught_up_before_a_launcher_has_said_what_is_alive(bench: Bench) -> None:
    job = bench.every(MINUTE)
    bench.turn(5 * MINUTE)
    bench.turns()
    assert runs_of(bench, job) == []
    bench.reconcile()
    assert [state for _, state in runs_of(bench, job)] == ["queued"]


def test_without_a_launcher_later_slots_wait_queued(ready: Bench) -> None:
    job = ready.every(MINUTE)
    ready.turn(11_000, silent=True)  # for more than ten seconds
    assert ready.world.link.state == "absent"
    for _ in range(3):
        ready.turn(MINUTE)
    assert [state for _, state in runs_of(ready, job)] == ["queued"]
    assert ready.job(job).state.consumed_slots == 2
    assert ready.launches == []


def test_a_slot_that_comes_while_the_job_runs_is_consumed(ready: Bench) -> None:
    job = ready.every(MINUTE)
    ready.turn(MINUTE)
    ready.turn()
    ready.turn(MINUTE)
    ready.turn(MINUTE)
    assert len(runs_of(ready, job)) == 1
    assert ready.job(job).state.consumed_slots == 2
    finish(ready, job)
    ready.turn(MINUTE)
    assert [state for _, state in runs_of(ready, job)] == ["ok", "queued"]


def test_a_one_shot_that_went_well_goes(ready: Bench) -> None:
    job = ready.at(MINUTE)
    ready.turn(MINUTE)
    assert due_ms(ready, job) is None
    ready.turn()
    run_id = finish(ready, job)
    with pytest.raises(Refusal, match="CRON_JOB_NOT_FOUND"):
        ready.job(job)
    assert ready.run(run_id).state == "ok"


@pytest.mark.parametrize("how", ["failed", "interrupted", "cancelled while queued"])
def test_a_one_shot_that_did_not_go_well_stays_disabled(ready: Bench, how: str) -> None:
    job = ready.at(MINUTE)
    ready.turn(MINUTE)
    if how == "cancelled while queued":
        ready.post("run.cancel", {"runId": next(iter(ready.states()))})
    ready.turn()
    if how == "failed":
        finish(ready, job, Status.ERROR)
    elif how == "interrupted":
        ready.crash()
        ready.reconcile()
    view = ready.job(job)
    assert not view.enabled
    assert view.next_run_at_ms is None
    ready.turn(MINUTE)
    assert len(ready.states()) == 1


def test_a_one_shot_waits_for_a_run_by_hand_that_lasts_over_its_slot(ready: Bench) -> None:
    """Contract 4.5: a run that was forced before the slot keeps it."""
    job = ready.at(MINUTE)
    slot_ms = due_ms(ready, job)
    ready.start(job)
    ready.turn(MINUTE)
    for _ in range(12):
        ready.turn(1_000)
    assert [state for _, state in runs_of(ready, job)] == ["active"]
    for at_ms in (slot_ms, None):
        asked = {"id": job.id} | ({"atMs": at_ms} if at_ms else {})
        assert ready.ask("cron.why", WhyView, asked).cause == "deferred"
    finish(ready, job)
    assert ready.job(job).enabled
    for _ in range(6):
        ready.turn(1_000)
    assert [state for _, state in runs_of(ready, job)] == ["ok", "active"]
    assert ready.sql("SELECT slot_ms FROM runs WHERE state = 'active'") == [(slot_ms,)]


def test_a_forced_one_shot_keeps_its_slot(ready: Bench) -> None:
    job = ready.at(MINUTE)
    ready.start(job)
    finish(ready, job)
    assert ready.job(job).enabled
    ready.turn(MINUTE)
    assert [state for _, state in runs_of(ready, job)] == ["ok", "queued"]


def test_a_slot_that_was_requested_before_is_not_requested_again(ready: Bench) -> None:
    job = ready.every(MINUTE)
    slot = due_ms(ready, job)
    assert slot is not None
    ready.turn(MINUTE)
    ready.turn()
    finish(ready, job)
    ready.sql("UPDATE job_state SET next_due_ms = ?", slot)  # as after a restore of an older state
    ready.turn(5)
    assert runs_of(ready, job) == [(slot, "ok")]
    assert due_ms(ready, job) == slot + MINUTE
    assert ready.job(job).state.consumed_slots == 0


DAMAGE = {
    "bad JSON": "'{'",
    "bad UTF-8": "CAST(x'7bff7d' AS TEXT)",
    "unknown payload": """json_set(definition, '$.payload.kind', 'teleport')""",
    "unknown schedule": """json_set(definition, '$.schedule.kind', 'now and then')""",
    "unknown field": """json_set(definition, '$.later', 1)""",
}
UNPLANNABLE = {
    "bad zone": """json_set(definition, '$.schedule', json('{"kind":"cron","expr":"* * * * *","tz":"Mars/Base"}'))""",
    "bad expression": """json_set(definition, '$.schedule', json('{"kind":"cron","expr":"99 * * * *","tz":"UTC"}'))""",
    "no anchor": """json_remove(definition, '$.schedule.anchorMs')""",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_job_is_flagged_and_the_others_fire(ready: Bench, damage: str) -> None:
    broken, healthy = ready.every(MINUTE, name="broken"), ready.every(MINUTE, name="healthy")
    ready.sql(f"UPDATE jobs SET definition = {DAMAGE[damage]} WHERE job_id = ?", broken.id)
    ready.turn(MINUTE)
    assert runs_of(ready, broken) == []
    assert [state for _, state in runs_of(ready, healthy)] == ["queued"]
    view = ready.job(broken)
    assert view.status == "flagged"
    assert view.flag
    assert due_ms(ready, broken) is None
    ready.turn()
    finish(ready, healthy)
    ready.turn(MINUTE)
    assert [state for _, state in runs_of(ready, healthy)] == ["ok", "queued"]


@pytest.mark.parametrize("damage", UNPLANNABLE)
def test_a_job_that_cannot_be_planned_runs_the_slot_that_has_come_and_is_flagged(ready: Bench, damage: str) -> None:
    broken, healthy = ready.every(MINUTE), ready.every(MINUTE)
    ready.sql(f"UPDATE jobs SET definition = {UNPLANNABLE[damage]} WHERE job_id = ?", broken.id)
    ready.turn(MINUTE)
    ready.turn()
    view = ready.job(broken)
    assert (view.state.live_run_id is not None, view.flag is not None) == (True, True)
    finish(ready, broken)
    assert ready.job(broken).status == "flagged"
    finish(ready, healthy)
    ready.turn(MINUTE)
    assert [len(runs_of(ready, job)) for job in (broken, healthy)] == [1, 2]


def test_a_lost_deadline_is_planned_anew_at_the_next_start(ready: Bench) -> None:
    lost, broken, off = ready.every(MINUTE), ready.every(MINUTE), ready.every(MINUTE, enabled=False)
    ready.sql("UPDATE job_state SET next_due_ms = NULL")
    ready.sql("UPDATE jobs SET definition = '[]' WHERE job_id = ?", broken.id)
    ready.crash()
    assert due_ms(ready, lost) == ready.clock.wall + MINUTE
    assert (due_ms(ready, broken), due_ms(ready, off)) == (None, None)
    assert ready.job(broken).status == "flagged"


def test_a_bug_in_one_job_stops_nobody_and_leaves_no_event(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, healthy = ready.every(MINUTE, name="broken"), ready.every(MINUTE, name="healthy")
    real = ledger.request

    def request(turn: Turn, job: JobRow, wanted: ledger.Request) -> bool:
        made = real(turn, job, wanted)
        if job.job_id == broken.id:
            raise RuntimeError("a bug")
        return made

    monkeypatch.setattr(ledger, "request", request)
    ready.turn(MINUTE)
    assert runs_of(ready, broken) == []
    assert [view.job_id for view in ready.run_events()] == [healthy.id]
    assert ready.job(broken).status == "flagged"


def test_an_edit_mends_a_flagged_job(ready: Bench) -> None:
    job = ready.every(MINUTE)
    ready.sql("UPDATE job_state SET flag = 'broken', next_due_ms = NULL")
    edited = ready.ask("cron.update", JobView, {"id": job.id, "reschedule": True})
    assert (edited.flag, edited.status) == (None, "idle")
    assert due_ms(ready, job) == ready.clock.wall + MINUTE


def test_a_job_that_cannot_be_planned_cannot_be_enabled(ready: Bench) -> None:
    job = ready.add({"kind": "cron", "expr": "0 5 * * *", "tz": "Europe/Paris"}, enabled=False)
    ready.sql("UPDATE jobs SET definition = replace(definition, 'Europe/Paris', 'Mars/Base')")
    with pytest.raises(Refusal, match="INVALID_REQUEST"):
        ready.ask("cron.update", JobView, {"id": job.id, "patch": {"enabled": True}})


@pytest.mark.parametrize("mode", ["service.pause", "service.drain"])
def test_nothing_becomes_due_until_resume(ready: Bench, mode: str) -> None:
    job = ready.every(MINUTE)
    ready.post(mode)
    ready.turn()
    ready.turn(3 * MINUTE)
    assert runs_of(ready, job) == []
    ready.reconcile()
    ready.post("service.resume")
    ready.turn()
    assert len(runs_of(ready, job)) == 1
    assert ready.job(job).state.consumed_slots == 0


def test_a_burst_is_launched_while_it_is_still_being_requested(ready: Bench) -> None:
    for _ in range(due.BATCH + 10):
        ready.every(MINUTE)
    ready.turn(MINUTE + 1000)
    assert len(ready.states()) == due.BATCH
    ready.turn()
    assert len(ready.states()) == due.BATCH + 10
    assert len(ready.launches) == 8
    assert ready.ports.waited_ms[-1] == 0


def test_a_slot_may_be_spent_by_hand(ready: Bench) -> None:
    job = ready.every(MINUTE)
    assert ready.run_now(job, "due").reason == "not-due"
    ready.post("service.pause")
    ready.turn(MINUTE + 1)
    slot = due_ms(ready, job)
    answer = ready.run_now(job, "due")
    assert answer.enqueued
    assert due_ms(ready, job) == (slot or 0) + MINUTE
    ready.post("service.resume")
    ready.turn()
    ready.reconcile()
    assert len(runs_of(ready, job)) == 1


@given(
    st.one_of(
        st.builds(Every, st.integers(1, 10**9), st.integers(0, 2 * 10**12)),
        st.sampled_from(["* * * * *", "*/7 3-5 * * 1", "0 0 29 2 *", "30 2 * * *"]).map(
            lambda expr: Cron(expr, "Europe/Berlin", 300_000)
        ),
    ),
    st.integers(1_500_000_000_000, 2_500_000_000_000),
)
def test_the_next_deadline_is_later_than_now(schedule: Every | Cron, now_ms: int) -> None:
    job = JobRow(1, "j", "n", True, b"", "", 0, 0, now_ms - 5, None, None, None, None, None, None, 0, 0, 0, 0)
    planned = due.natural_deadline(job, Definition("n", schedule, Command(["x"])), now_ms)
    assert planned is not None
    assert planned.due_ms > now_ms


SCHEDULES: list[Mapping[str, object]] = [
    {"kind": "every", "everyMs": 1},
    {"kind": "every", "everyMs": 250},
    {"kind": "cron", "expr": "* * * * * *"},
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_quickest_schedules_do_not_turn_the_loop_into_a_spin(ready: Bench, schedule: Mapping[str, object]) -> None:
    job = ready.add(schedule)
    for _ in range(5):
        ready.turn(1000)
    row = find_job(ready.store, job.id)
    assert row is not None
    assert row.next_due_ms is not None
    assert row.next_due_ms > ready.clock.wall
    assert len(ready.states()) == 1


def test_the_wait_ends_with_the_next_deadline(ready: Bench) -> None:
    ready.turns()
    ready.every(MINUTE)
    ready.turns()
    assert ready.ports.waited_ms[-1] == 1000
    ready.turn(MINUTE - 300)
    ready.turn()
    assert ready.ports.waited_ms[-1] == 300


def test_the_clock_set_back_keeps_deadlines(ready: Bench) -> None:
    job = ready.every(MINUTE)
    slot = due_ms(ready, job)
    ready.clock.wall -= 3600_000
    ready.turn()
    assert due_ms(ready, job) == slot
    assert ready.states() == {}


def test_an_adopted_run_of_the_last_life_takes_the_missed_slot(ready: Bench) -> None:
    job = ready.every(MINUTE)
    run_id = ready.start(job)
    ready.crash()
    ready.turn(5 * MINUTE)
    ready.reconcile({run_id: RunState.HELD})
    ready.turns()
    assert ready.states() == {run_id: "active"}
    assert ready.job(job).state.consumed_slots == 1
