"""Jobs that fail: quick retries, backoff, being switched off, and starting afresh."""

import pytest

from cronward.protocol.config import CatchUpConfig, CommandDefaults, Config, RetryConfig, Snapshot
from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import JobView
from tests.support.following import Followed
from tests.support.scheduler_bench import Bench

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
FIVE_MINUTELY = {"kind": "cron", "expr": "*/5 * * * *", "tz": "UTC"}
MINUTELY = {"kind": "every", "everyMs": MINUTE}


def test_pitfall_19_a_transient_error_is_tried_again_before_the_next_slot(ready: Bench) -> None:
    job = Followed(ready, FIVE_MINUTELY)
    job.go_to(5 * MINUTE)
    for delay_ms in (30_000, 60_000):
        ended_ms = ready.clock.wall - job.zero_ms
        job.fail(Reason.TIMED_OUT)
        assert job.due == ("retry", ended_ms + delay_ms)
        job.go_to(ended_ms + delay_ms)
    assert [state for _, state in job.runs()] == ["error", "error", "active"]
    job.end()
    assert job.due == ("slot", 10 * MINUTE)
    assert job.now.state.consecutive_errors == 0


def test_pitfall_19_a_short_interval_waits_out_its_backoff(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 10 * SECOND})
    job.go_to(10 * SECOND)
    job.fail()
    assert job.due == ("backoff", 40 * SECOND)
    assert job.decisions() == [("backoff", 20 * SECOND, 40 * SECOND)]
    job.go_to(40 * SECOND)
    assert job.runs() == [(10 * SECOND, "error"), (40 * SECOND, "active")]
    assert job.due == ("slot", 50 * SECOND)


def test_a_permanent_error_waits_for_the_next_slot(ready: Bench) -> None:
    job = Followed(ready, FIVE_MINUTELY)
    job.go_to(5 * MINUTE)
    job.fail(Reason.PROGRAM_MISSING)
    assert job.due == ("slot", 10 * MINUTE)
    assert job.now.state.consecutive_errors == 1


def test_b206_pitfall_20_ten_failures_in_a_row_switch_the_job_off_and_it_is_told(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 2 * HOUR}, name="backup")
    for number in range(1, 11):
        ready.turn(2 * HOUR)
        ready.turns(2)
        job.fail()
        assert job.now.enabled is (number < 10)
    view = job.now
    assert view.status == "disabled"
    assert view.state.auto_disabled is not None
    assert (view.state.auto_disabled.reason, view.state.auto_disabled.consecutive_errors) == (
        "consecutive-failures",
        10,
    )
    assert view.state.next_run_at_ms is None
    ready.turn(SECOND)
    ready.turn(SECOND)
    (notice,) = [notice for notice in ready.notices() if notice.kind == "auto_disabled"]
    assert "'backup' failed 10 times in a row" in notice.text
    (change,) = ready.sql("SELECT caller, detail FROM changes WHERE job_id = ? AND action = 'updated'", job.view.id)
    assert change[0] == "cronward"
    assert [state for _, state in job.runs()] == ["error"] * 10


def test_enabling_starts_afresh(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, retry={"disableAfter": 2, "backoffSeconds": [1]})
    for minute in (1, 2):
        job.go_to(minute * MINUTE)
        job.fail()
    assert job.now.state.auto_disabled is not None
    assert ready.run_now(job.view, "if-enabled").reason == "disabled"
    ready.turn(10 * MINUTE)
    state = job.edit(enabled=True).state
    assert (state.auto_disabled, state.consecutive_errors, state.backoff_until_ms) == (None, 0, None)
    assert state.schedule_activated_at_ms == ready.clock.wall
    assert (state.next_run_at_ms or 0) > ready.clock.wall  # nothing of the time while it was off is caught up
    ready.turns()
    assert len(job.runs()) == 2


def test_a_skipped_run_in_between_sets_the_count_back(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, retry={"disableAfter": 2, "backoffSeconds": [1]})
    for minute, status in enumerate([Status.ERROR, Status.SKIPPED, Status.ERROR], 1):
        job.go_to(minute * MINUTE)
        job.end(status, Reason.EXIT_CODE if status is Status.ERROR else Reason.GATEWAY_UNAVAILABLE)
    assert job.now.enabled
    assert job.now.state.consecutive_errors == 1


def test_a_one_shot_is_tried_again_and_then_kept_disabled(ready: Bench) -> None:
    job = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + MINUTE)})
    job.go_to(MINUTE)
    for delay_ms in (30_000, 60_000, 300_000):
        ended_ms = ready.clock.wall - job.zero_ms
        job.fail(Reason.TIMED_OUT)
        assert job.due == ("retry", ended_ms + delay_ms)
        job.go_to(ended_ms + delay_ms)
    job.fail(Reason.TIMED_OUT)
    assert (job.now.status, job.due, len(job.runs())) == ("disabled", None, 4)


@pytest.mark.parametrize("reason", [Reason.INTERRUPTED, Reason.CANCELLED, Reason.TERMINATED])
def test_what_the_service_or_a_person_ended_counts_for_nothing(ready: Bench, reason: Reason) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 10 * SECOND})
    job.go_to(10 * SECOND)
    job.fail(reason)
    assert (job.due, job.now.state.consecutive_errors) == (("slot", 20 * SECOND), 0)


# by hand


def test_pitfall_13_a_forced_run_that_fails_opens_backoff_but_is_not_tried_again(ready: Bench) -> None:
    job = Followed(ready, FIVE_MINUTELY)
    job.go_to(4 * MINUTE + 50 * SECOND)
    ready.start(job.view)
    job.fail(Reason.TIMED_OUT)
    ended_ms = ready.clock.wall - job.zero_ms
    assert job.due == ("slot", 5 * MINUTE)
    assert job.now.state.consecutive_errors == 1
    job.go_to(5 * MINUTE)
    assert len(job.runs()) == 1
    assert job.due == ("backoff", ended_ms + 30 * SECOND)
    assert job.decisions() == [("backoff", 5 * MINUTE, ended_ms + 30 * SECOND)]
    job.go_to(ended_ms + 30 * SECOND)
    assert [state for _, state in job.runs()] == ["error", "active"]


def test_pitfall_13_a_disabled_job_may_be_run_by_hand_and_stays_disabled(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, enabled=False, retry={"disableAfter": 1})
    ready.start(job.view)
    assert ready.run_now(job.view).reason == "already-running"
    job.fail()
    assert (job.now.enabled, job.due, job.now.state.auto_disabled) == (False, None, None)


def test_b197_a_run_by_hand_moves_nothing(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 24 * HOUR})
    job.go_to(10 * SECOND)
    ready.start(job.view)
    ready.turn(7 * SECOND)
    job.end()
    assert job.due == ("slot", 24 * HOUR)


def test_pitfall_14_due_at_the_slot_and_a_moment_before(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    ready.post("service.pause")
    ready.turn(MINUTE - 1)
    assert ready.run_now(job.view, "due").reason == "not-due"
    ready.turn(1)
    assert ready.run_now(job.view, "due").enqueued
    assert job.due == ("slot", 2 * MINUTE)
    assert job.runs() == [(MINUTE, "queued")]


# numbers


def test_the_preset_of_the_job_and_the_numbers_of_the_configuration(bench: Bench) -> None:
    bench.config = Config(retry=RetryConfig(backoff_s=(7,), max_retries=0))
    bench.crash()
    bench.reconcile()
    plain = Followed(bench, MINUTELY)
    quick = Followed(bench, MINUTELY, retry={"preset": "goclaw"})
    plain.go_to(MINUTE)
    plain.fail(Reason.TIMED_OUT)
    quick.fail(Reason.TIMED_OUT)
    assert plain.due == ("slot", 2 * MINUTE)
    kind, due_ms = quick.due or ("", 0)
    assert kind == "retry"
    assert 1_500 <= due_ms - MINUTE <= 2_500


def test_the_fields_are_shown_and_patched(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, retry={"preset": "goclaw"}, catchUp={"policy": "none"}, pacing={"min": "30s"})
    view = job.edit(retry={"maxRetries": 1}, catchUp=None, pacing={"max": "2m"})
    assert view.retry is not None
    assert (view.retry.preset, view.retry.max_retries, view.catch_up) == ("goclaw", 1, None)
    assert view.pacing is not None
    assert (view.pacing.min, view.pacing.max) == (30_000, 120_000)
    assert ready.ask("cron.get", JobView, {"id": job.view.id}).pacing == view.pacing


def test_a_schedule_that_cannot_be_computed_three_times_switches_the_job_off(ready: Bench) -> None:
    job = Followed(ready, {"kind": "cron", "expr": "* * * * *", "tz": "Europe/Paris"})
    ready.sql("UPDATE jobs SET definition = replace(definition, 'Europe/Paris', 'Mars/Base')")
    ready.turn(MINUTE)
    assert job.now.state.schedule_error_count == 1
    for errors in (2, 3):
        ready.crash()
        assert job.now.state.schedule_error_count == errors
    assert job.now.state.auto_disabled is not None
    assert job.now.state.auto_disabled.reason == "schedule-errors"
    assert not job.now.enabled


def test_a_zone_that_comes_back_is_planned_at_the_next_start(ready: Bench) -> None:
    job = Followed(ready, {"kind": "cron", "expr": "* * * * *", "tz": "Europe/Paris"})
    ready.sql("UPDATE jobs SET definition = replace(definition, 'Europe/Paris', 'Mars/Base')")
    ready.turn(MINUTE)
    ready.sql("UPDATE jobs SET definition = replace(definition, 'Mars/Base', 'Europe/Paris')")
    ready.crash()
    assert (job.now.flag, job.due, job.now.state.schedule_error_count) == (None, ("slot", 2 * MINUTE), 0)


def test_further_failures_by_hand_move_the_end_of_a_backoff(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 20_000})
    job.go_to(20_000)
    job.fail()
    assert job.due == ("backoff", 50_000)
    for _ in range(2):
        ready.start(job.view)
        job.fail()
    until_ms = (job.now.state.backoff_until_ms or 0) - job.zero_ms
    assert until_ms > 300_000
    job.go_to(60_000)
    assert job.due == ("backoff", until_ms)
    assert [state for _, state in job.runs()] == ["error"] * 3


def test_a_configuration_that_changes_while_a_run_lasts(ready: Bench) -> None:
    """What the run may do was fixed when it started; what follows from its end is by the rules of then."""
    job = Followed(ready, {"kind": "every", "everyMs": 20_000})
    job.go_to(20_000)
    limits = ready.launches[-1].limits
    retry = RetryConfig(backoff_s=(70,), disable_after=2)
    ready.world.settings.snapshot = Snapshot(2, Config(retry=retry, command=CommandDefaults(timeout_s=1)))
    assert ready.launches[-1].limits == limits
    job.fail()
    assert job.due == ("backoff", 90_000)
    ready.world.settings.snapshot = Snapshot(3, Config())
    job.go_to(80_000)
    assert job.due == ("backoff", 90_000)  # what was decided stays
    job.go_to(90_000)
    ready.world.settings.snapshot = Snapshot(4, Config(retry=retry))
    job.fail()
    assert not job.now.enabled


def test_a_pace_that_changes_while_missed_slots_wait(ready: Bench) -> None:
    """Places in the catch-up that were given stay; whoever asks next gets one by the rules of then."""
    jobs = [Followed(ready, {"kind": "every", "everyMs": 24 * HOUR}) for _ in range(8)]
    ready.clock.wall += 24 * HOUR + MINUTE
    ready.turns()
    waiting = [job.due for job in jobs if job.due is not None and job.due[0] == "catch_up"]
    assert len(waiting) == 3
    ready.world.settings.snapshot = Snapshot(2, Config(catch_up=CatchUpConfig(spacing_s=600)))
    ready.turns()
    assert [job.due for job in jobs if job.due is not None and job.due[0] == "catch_up"] == waiting


def test_a_retry_that_goes_well_ends_the_backoff_whatever_slot_came_meanwhile(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, retry={"preset": "goclaw", "jitter": 0})
    job.go_to(MINUTE)
    for _ in range(3):
        job.fail(Reason.TIMED_OUT)
        assert job.now.state.due_kind == "retry"
        job.go_to((job.next_ms or 0) - job.zero_ms)
    job.go_to(2 * MINUTE + SECOND)  # the slot comes while the last retry is active
    assert job.decisions()[-1][0] == "consumed"
    job.end()
    assert job.due == ("slot", 3 * MINUTE)
