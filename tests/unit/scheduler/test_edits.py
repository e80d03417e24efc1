"""Edits and runs: what an edit does to slots, queued requests and active runs, and what a run may still do after it."""

import datetime as dt

import pytest

from cronward.protocol.outcome import Reason
from cronward.protocol.views import AddResult, JobList, JobView, RemoveAnswer, WhyView
from cronward.protocol.why import Cause
from cronward.schedule.at import parse_at
from tests.support.following import Followed, pass_to
from tests.support.scheduler_bench import Bench, Refusal

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
MINUTELY = {"kind": "every", "everyMs": MINUTE}
HOURLY = {"kind": "every", "everyMs": HOUR}


def queued(bench: Bench, job: Followed) -> None:
    """Its first slot comes while nothing can be started."""
    bench.cannot_start = "no space"
    job.go_to(MINUTE)
    assert job.runs() == [(MINUTE, "queued")]


def reasons(bench: Bench) -> list[str | None]:
    return [bench.run(name).reason for name in bench.states()]


def test_pitfall_16_a_schedule_that_was_changed_and_changed_back_is_a_new_one(ready: Bench) -> None:
    ten_minutes = {"kind": "every", "everyMs": 10 * MINUTE}
    job = Followed(ready, ten_minutes)
    job.go_to(10 * MINUTE)
    job.edit(schedule=HOURLY)
    ready.clock.advance(10 * SECOND)
    edited = job.edit(schedule={**ten_minutes, "anchorMs": job.zero_ms})
    assert edited.state.next_run_at_ms == job.zero_ms + 20 * MINUTE
    job.fail(Reason.TIMED_OUT)
    # the run's end neither retries nor backs off: the edit decides. It counts all the same.
    assert job.due == ("slot", 20 * MINUTE)
    assert job.now.state.consecutive_errors == 1
    job.go_to(20 * MINUTE)
    job.fail(Reason.TIMED_OUT)
    assert job.due == ("retry", 21 * MINUTE)  # the run after it is an ordinary one


def test_pitfall_16_a_new_payload_is_what_a_queued_run_starts(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    queued(ready, job)
    job.edit(payload={"kind": "command", "argv": ["/bin/new"]})
    ready.cannot_start = None
    ready.turn(SECOND)
    ready.turn(SECOND)
    assert b"/bin/new" in ready.launches[-1].job


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ({"schedule": HOURLY}, Reason.RESCHEDULED),
        ({"enabled": False}, Reason.DISABLED),
        ({"pacing": {"min": "1m"}}, Reason.RESCHEDULED),
    ],
)
def test_pitfall_17_b196_a_queued_run_goes_with_its_schedule(
    ready: Bench, patch: dict[str, object], reason: Reason
) -> None:
    job = Followed(ready, MINUTELY)
    queued(ready, job)
    job.edit(**patch)
    assert job.runs() == [(MINUTE, "skipped")]
    assert reasons(ready) == [reason]
    assert job.now.state.consecutive_skipped == 0


@pytest.mark.parametrize("patch", [{"description": "x"}, {"retry": {"preset": "goclaw"}}, {"catchUp": {"maxRuns": 2}}])
def test_other_edits_leave_it_and_its_deadline(ready: Bench, patch: dict[str, object]) -> None:
    job = Followed(ready, MINUTELY)
    queued(ready, job)
    before = job.due
    job.edit(**patch)
    assert job.runs() == [(MINUTE, "queued")]
    assert job.due == before


def test_b194_a_job_that_is_disabled_while_it_runs_stays_so(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    job.go_to(MINUTE)
    job.edit(enabled=False)
    job.end()
    assert (job.now.enabled, job.due, job.runs()) == (False, None, [(MINUTE, "ok")])


def test_disabled_and_enabled_during_the_run(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    job.go_to(MINUTE)
    job.edit(enabled=False)
    ready.clock.advance(3 * MINUTE + 5)
    job.edit(enabled=True)
    job.fail(Reason.TIMED_OUT)
    assert job.due == ("slot", 5 * MINUTE)  # no catch-up of the minutes between, no retry of the older run


def test_b188_a_one_shot_that_is_moved_while_it_runs_runs_again(ready: Bench) -> None:
    job = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + MINUTE)})
    job.go_to(MINUTE)
    job.edit(schedule={"kind": "at", "at": str(job.zero_ms + 5 * MINUTE)})
    job.end()
    assert job.due == ("slot", 5 * MINUTE)
    ready.crash()
    ready.reconcile()
    job.go_to(5 * MINUTE)
    assert job.runs() == [(MINUTE, "ok"), (5 * MINUTE, "active")]
    job.end()
    with pytest.raises(Refusal, match="CRON_JOB_NOT_FOUND"):
        _ = job.now


def test_b187_a_one_shot_is_enabled_until_it_ran(ready: Bench) -> None:
    job = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + 30 * SECOND)}, deleteAfterRun=False)
    assert job.now.enabled
    job.go_to(30 * SECOND)
    assert job.now.enabled
    job.end()
    assert job.now.status == "disabled"


def test_b088_an_edit_never_makes_up_a_missed_slot(ready: Bench) -> None:
    # made at 08:00; daily at 09:00 ran; at 15:00 it becomes 12:00
    job = Followed(ready, {"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"})
    ready.turn(HOUR)
    ready.turns()
    job.end()
    ready.turn(6 * HOUR)
    job.edit(schedule={"kind": "cron", "expr": "0 12 * * *"})
    ready.turns()
    assert job.due == ("slot", 28 * HOUR)
    assert len(job.runs()) == 1


def test_b091_saving_the_same_again_keeps_the_slot(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, name="same")
    job.go_to(MINUTE - 10 * SECOND)
    job.edit(schedule=MINUTELY, enabled=True, name="same")
    assert job.due == ("slot", MINUTE)
    job.go_to(MINUTE)
    assert job.runs() == [(MINUTE, "active")]


def test_b190_the_answer_of_an_edit_has_the_new_slot(ready: Bench) -> None:
    job = Followed(ready, {"kind": "cron", "expr": "0 * * * *", "tz": "UTC", "staggerMs": 0})
    view = job.edit(schedule={"kind": "cron", "expr": "*/2 * * * *"})
    assert view.state.next_run_at_ms == job.zero_ms + 2 * MINUTE
    job.go_to(2 * MINUTE)
    job.end()
    assert job.runs() == [(2 * MINUTE, "ok")]
    noon = job.edit(schedule={"kind": "cron", "expr": "0 12 * * *"})
    assert noon.state.next_run_at_ms == parse_at("2027-01-15T12:00Z")
    moved = job.edit(schedule={"kind": "cron", "tz": "Asia/Tokyo"})
    tomorrow_ms = parse_at("2027-01-16T03:00Z")  # 12:00 there, where today's is over
    assert moved.state.next_run_at_ms == job.next_ms == tomorrow_ms
    (listed,) = ready.ask("cron.list", JobList).jobs
    assert (listed.schedule, listed.state.next_run_at_ms) == (moved.schedule, tomorrow_ms)
    pass_to(ready, "2027-01-15T12:01Z")
    pass_to(ready, "2027-01-16T02:59:58Z")
    assert len(job.runs()) == 1  # nothing at the old schedule's noon
    job.go_to(tomorrow_ms - job.zero_ms)
    assert job.slots()[1:] == [tomorrow_ms]


def test_b191_only_one_shots_remove_themselves(ready: Bench) -> None:
    with pytest.raises(Refusal, match="deleteAfterRun"):
        Followed(ready, MINUTELY, deleteAfterRun=True)


def test_pitfall_8_capacity_that_comes_free_is_used_at_once(ready: Bench) -> None:
    jobs = [Followed(ready, MINUTELY) for _ in range(9)]
    ready.turn(MINUTE)
    ready.turn()
    assert [job.runs()[0][1] for job in jobs] == ["active"] * 8 + ["queued"]
    jobs[0].end()
    assert jobs[8].runs() == [(MINUTE, "active")]  # in the turn that freed the place


def test_what_a_schedule_edit_does_to_a_backoff_and_a_deferral(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 10 * SECOND})
    job.go_to(10 * SECOND)
    job.fail()
    assert job.due == ("backoff", 40 * SECOND)
    state = job.edit(schedule={"kind": "every", "everyMs": 20 * SECOND}).state
    assert (state.due_kind, state.backoff_until_ms, state.consecutive_errors) == ("slot", None, 1)
    assert state.next_run_at_ms == ready.clock.wall + 20 * SECOND


def test_pitfall_15_an_accepted_run_that_cannot_be_started_is_one_skipped_row(ready: Bench) -> None:
    job = Followed(ready, HOURLY)
    ready.cannot_start = "no space"
    ready.turn(SECOND)
    answer = ready.run_now(job.view)
    assert answer.run_id is not None
    ready.post("cron.remove", {"id": job.view.id})
    ready.turn()
    ready.cannot_start = None
    ready.turn(SECOND)
    ready.turns()
    assert ready.states() == {answer.run_id: "skipped"}
    assert ready.run(answer.run_id).reason == Reason.REMOVED
    assert ready.launches == []


def test_a_run_by_hand_survives_what_withdraws_a_slot(ready: Bench) -> None:
    job = Followed(ready, HOURLY)
    ready.cannot_start = "no space"
    ready.turn(SECOND)
    answer = ready.run_now(job.view)
    job.edit(enabled=False)
    ready.cannot_start = None
    ready.turn(SECOND)
    ready.turns()
    assert ready.states() == {answer.run_id: "active"}
    job.end()
    assert (job.now.enabled, job.due) == (False, None)


# one-shots: there is one slot, and nothing is enabled to wait for none


def one_shot(bench: Bench) -> Followed:
    return Followed(bench, {"kind": "at", "at": str(bench.clock.wall + MINUTE)}, deleteAfterRun=False)


def enable(job: Followed) -> None:
    job.edit(enabled=True)


def test_a_one_shot_that_had_its_run_is_not_enabled_again(ready: Bench) -> None:
    job = one_shot(ready)
    job.go_to(MINUTE)
    job.end()
    assert not job.now.enabled
    for _ in range(2):
        with pytest.raises(Refusal, match=r"schedule\.at: has had its run .*allowed: another time, or a run by hand"):
            enable(job)
        assert not job.now.enabled
        ready.turn(HOUR)
    job.edit(enabled=True, schedule={"kind": "at", "at": str(ready.clock.wall + MINUTE)})
    assert job.now.state.next_run_at_ms == ready.clock.wall + MINUTE


def test_a_one_shot_that_was_off_at_its_time_is_not_enabled_without_another(ready: Bench) -> None:
    job = one_shot(ready)
    job.edit(enabled=False)
    ready.turn(6 * MINUTE)
    with pytest.raises(Refusal, match=r"schedule\.at: is over"):
        enable(job)
    assert not job.now.enabled


def test_a_retry_of_a_one_shot_is_not_lost_to_a_reschedule(ready: Bench) -> None:
    job = one_shot(ready)
    job.go_to(MINUTE)
    job.fail(Reason.TIMED_OUT)
    assert job.due == ("retry", MINUTE + 30 * SECOND)
    with pytest.raises(Refusal, match="has had its run"):
        job.reschedule()
    assert job.due == ("retry", MINUTE + 30 * SECOND)


def test_a_retry_is_not_run_after_a_run_by_hand_that_served_its_slot(ready: Bench) -> None:
    """Contract 4.5: forced after the slot consumes it."""
    job = one_shot(ready)
    job.go_to(MINUTE)
    job.fail(Reason.TIMED_OUT)
    ready.start(job.view)
    job.end()
    assert (job.due, job.now.enabled) == (None, False)
    job.go_to(HOUR)
    assert len(job.runs()) == 2


def test_what_was_put_off_is_given_up_by_an_edit_and_why_says_so(ready: Bench) -> None:
    jobs = [Followed(ready, {"kind": "every", "everyMs": 24 * HOUR}) for _ in range(7)]
    ready.clock.wall += 24 * HOUR + MINUTE
    ready.turns()
    (put_off, *_) = [job for job in jobs if (job.due or ("",))[0] == "catch_up" and not job.runs()]
    slot_ms = put_off.zero_ms + 24 * HOUR
    asked = {"id": put_off.view.id, "atMs": slot_ms}
    assert ready.ask("cron.why", WhyView, asked).cause is Cause.DEFERRED
    put_off.reschedule()
    assert ready.ask("cron.why", WhyView, asked).cause is Cause.DROPPED


@pytest.mark.parametrize("what", ["disabled", "removed"])
def test_what_came_while_nobody_looked_is_given_up_by_an_edit_and_why_says_so(ready: Bench, what: str) -> None:
    job = Followed(ready, HOURLY)
    ready.clock.advance(90 * MINUTE)  # asleep; the edit is the first thing that is seen
    if what == "disabled":
        job.edit(enabled=False)
    else:
        ready.ask("cron.remove", RemoveAnswer, {"id": job.view.id})
    assert job.runs() == []
    assert job.why(job.zero_ms + HOUR).cause is Cause.DROPPED


def test_a_run_that_was_asked_for_because_it_was_due_goes_with_its_schedule(ready: Bench) -> None:
    """Contract 4.4: only what was forced stays."""
    for mode, left in (("due", "skipped"), ("force", "queued")):
        job = Followed(ready, MINUTELY)
        ready.cannot_start = "no space"
        ready.clock.advance(MINUTE)
        assert ready.run_now(job.view, mode).enqueued
        job.edit(schedule=HOURLY)
        assert [state for _, state in job.runs()] == [left]
        ready.cannot_start = None
        ready.turns()


def test_a_run_by_hand_of_a_job_that_is_switched_off_goes_unless_it_was_forced(ready: Bench) -> None:
    for mode, left in (("if-enabled", "skipped"), ("force", "queued")):
        job = Followed(ready, HOURLY)
        ready.cannot_start = "no space"
        ready.turn(SECOND)
        assert ready.run_now(job.view, mode).enqueued
        job.edit(schedule=MINUTELY)
        assert [state for _, state in job.runs()] == ["queued"]  # beside the schedule
        job.edit(enabled=False)
        assert [state for _, state in job.runs()] == [left]
        job.edit(description="x")
        assert [state for _, state in job.runs()] == [left]
        ready.cannot_start = None


def test_a_failure_of_before_the_edit_holds_up_no_slot_of_after_it(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    job.go_to(MINUTE)
    job.edit(schedule={"kind": "every", "everyMs": 10 * SECOND})
    job.fail()
    assert job.due == ("slot", MINUTE + 10 * SECOND)
    assert job.why(job.zero_ms + MINUTE + 20 * SECOND).cause is Cause.COMING


def test_a_failure_of_after_the_edit_does(ready: Bench) -> None:
    job = Followed(ready, HOURLY)
    job.edit(schedule={"kind": "every", "everyMs": 10 * SECOND})
    job.go_to(10 * SECOND)
    job.fail()
    assert job.due == ("backoff", 40 * SECOND)


def test_a_one_shot_that_was_run_by_hand_after_its_time_is_over(ready: Bench) -> None:
    job = one_shot(ready)
    job.edit(enabled=False)
    ready.turn(90 * SECOND)
    ready.start(job.view)
    job.end()
    with pytest.raises(Refusal, match="has had its run"):
        enable(job)


def test_a_schedule_that_is_over_is_not_enabled(ready: Bench) -> None:
    year = dt.datetime.fromtimestamp(ready.clock.wall / 1000, dt.UTC).year + 1
    job = Followed(ready, {"kind": "cron", "expr": f"0 0 0 1 1 * {year}", "tz": "UTC"}, enabled=False)
    ready.turn(2 * 366 * 24 * HOUR)
    with pytest.raises(Refusal, match="schedule: is over: it has no further slot"):
        enable(job)
    assert not job.now.enabled


def test_spaces_and_case_are_no_edit(ready: Bench) -> None:
    exact = {"kind": "cron", "expr": "0 * * * mon-fri", "tz": "UTC", "staggerMs": 0}
    job = Followed(ready, exact)
    patched = job.edit(schedule={"expr": " 0 *  * * MON-FRI"})
    assert patched.schedule == job.view.schedule
    assert patched.config_revision == job.view.config_revision


def test_a_declaration_with_other_spaces_changes_nothing(ready: Bench) -> None:
    wanted = {"payload": {"kind": "command", "argv": ["/bin/true"]}, "declarationKey": "k", "name": "n"}
    first = ready.ask("cron.add", AddResult, {**wanted, "schedule": {"kind": "cron", "expr": "0 * * * *", "tz": "UTC"}})
    again = ready.ask(
        "cron.add", AddResult, {**wanted, "schedule": {"kind": "cron", "expr": "0  * * * * ", "tz": "UTC"}}
    )
    assert (again.created, again.updated) == (False, False)
    assert again.job.config_revision == first.job.config_revision


def test_a_declaration_of_another_kind_takes_along_what_was_said_of_one_shots(ready: Bench) -> None:
    wanted = {"payload": {"kind": "command", "argv": ["/bin/true"]}, "declarationKey": "k", "name": "n"}
    at = {"kind": "at", "at": str(ready.clock.wall + HOUR)}
    ready.ask("cron.add", AddResult, {**wanted, "schedule": at, "deleteAfterRun": True})
    told = ready.ask("cron.add", AddResult, {**wanted, "schedule": HOURLY}).job
    assert told.delete_after_run is None
    patched = ready.ask("cron.update", JobView, {"id": told.id, "patch": {"description": "x"}})
    assert patched.description == "x"
    assert ready.ask("cron.add", AddResult, {**wanted, "schedule": at}).job.delete_after_run is True
