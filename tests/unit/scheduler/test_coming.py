"""What a job will run next, as `cron.get` answers: the deadline as it stands, then its slots."""

import pytest

from cronward.protocol.outcome import Reason
from cronward.protocol.views import JobView
from cronward.schedule.at import parse_at
from tests.support.following import Followed
from tests.support.scheduler_bench import Bench

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
FIVE_MINUTELY = {"kind": "cron", "expr": "*/5 * * * *", "tz": "UTC"}
HOURLY = {"kind": "every", "everyMs": HOUR}


def coming(job: Followed, view: JobView | None = None) -> list[tuple[int, str | None]]:
    """(time, note) of each."""
    return [(slot.at_ms - job.zero_ms, slot.note) for slot in (view or job.now).next_slots]


def test_the_slots_of_its_schedule(ready: Bench) -> None:
    job = Followed(ready, FIVE_MINUTELY)
    assert coming(job) == [(5 * MINUTE, None), (10 * MINUTE, None), (15 * MINUTE, None)]


def test_a_retry_comes_before_them(ready: Bench) -> None:
    job = Followed(ready, FIVE_MINUTELY)
    job.go_to(5 * MINUTE)
    job.fail(Reason.TIMED_OUT)
    retry = (5 * MINUTE + 30 * SECOND, "a quick retry of its last run")
    assert coming(job) == [retry, (10 * MINUTE, None), (15 * MINUTE, None)]
    (first, *_) = job.now.next_slots
    assert first.local == "2027-01-15T08:05:30+00:00"


def test_slots_that_backoff_leaves_out_are_not_shown(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 10 * SECOND})
    job.go_to(10 * SECOND)
    job.fail()
    failed = "later than its next slot, because it failed"
    assert coming(job) == [(40 * SECOND, failed), (50 * SECOND, None), (60 * SECOND, None)]


def test_the_backoff_of_a_run_by_hand_is_seen_before_the_slot_has_come(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 10 * SECOND})
    ready.start(job.view)
    job.fail()
    (first, second, _) = coming(job)
    assert first == (30 * SECOND, "later than its next slot, because it failed")
    assert second == (40 * SECOND, None)


def test_a_missed_slot_that_waits_says_which_it_is(ready: Bench) -> None:
    jobs = [Followed(ready, {"kind": "every", "everyMs": 24 * HOUR}) for _ in range(7)]
    ready.clock.wall += 24 * HOUR + MINUTE
    ready.turns()
    (put_off, *_) = [job for job in jobs if (job.due or ("",))[0] == "catch_up"]
    (first, second, _) = coming(put_off)
    assert first[1] == "a missed slot is run late: that of 2027-01-16T08:00:00.000+00:00"
    assert second == (48 * HOUR, None)


def test_a_one_shot_of_a_moment_ago_is_shown(ready: Bench) -> None:
    ready.cannot_start = "no space"
    answer = ready.at(-30 * SECOND)
    assert [slot.at_ms for slot in answer.next_slots] == [ready.clock.wall - 30 * SECOND]


def test_a_clock_that_was_ahead_is_not_hidden(ready: Bench) -> None:
    job = Followed(ready, HOURLY)
    ready.turn(400 * HOUR)
    ready.turns()
    job.end()
    ready.clock.wall -= 300 * HOUR
    assert coming(job)[0] == (401 * HOUR, None)


@pytest.mark.parametrize("field", ["enabled", "flag"])
def test_nothing_of_a_job_that_does_not_run(ready: Bench, field: str) -> None:
    job = Followed(ready, HOURLY)
    if field == "enabled":
        assert coming(job, job.edit(enabled=False)) == []
    else:
        ready.sql("UPDATE jobs SET definition = replace(definition, 'every', 'never')")
        assert coming(job) == []


def test_slots_that_a_clock_that_was_ahead_has_served_are_left_out(ready: Bench) -> None:
    job = Followed(ready, HOURLY)
    for hour in (2, 3):
        ready.turn(job.zero_ms + hour * HOUR - ready.clock.wall)
        ready.turns()
        job.end()
    ready.clock.wall -= 2 * HOUR + 30 * MINUTE
    ready.turns()
    job.reschedule()
    assert [at_ms for at_ms, _ in coming(job)] == [HOUR, 4 * HOUR, 5 * HOUR]


def test_what_a_clock_change_did_to_the_first_slot_is_said(ready: Bench) -> None:
    ready.clock.wall = parse_at("2027-03-14T06:30Z")
    ready.reconcile()
    job = Followed(ready, {"kind": "cron", "expr": "5 * * * *", "tz": "America/New_York"})
    (_, note), *_ = coming(job)
    assert note == "2027-03-14 02:05 is dropped: the clocks go from 2027-03-14 02:00 to 2027-03-14 03:00"


def test_of_several_missed_slots_the_first_is_listed(ready: Bench) -> None:
    job = Followed(ready, FIVE_MINUTELY, catchUp={"policy": "all"})
    ready.turn(17 * MINUTE)
    ready.turns()
    job.end()
    assert (coming(job)[0][1] or "").endswith("08:10:00+00:00; others may follow it")


@pytest.mark.parametrize("due_ms", [4611686018427387904, -(2**62), 253402300800000])
def test_a_damaged_deadline_hides_nothing(ready: Bench, due_ms: int) -> None:
    job = Followed(ready, FIVE_MINUTELY)
    ready.sql("UPDATE job_state SET next_due_ms = ?", due_ms)
    assert job.now.next_run_at_ms == due_ms
