"""The clock is set, the machine sleeps, the zone database changes."""

import datetime as dt
import importlib.resources
import zoneinfo
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.protocol.outcome import Reason
from cronward.protocol.views import ServiceStatus
from cronward.schedule import zone_database
from cronward.schedule.planner import next_slot_ms
from tests.support.following import Followed
from tests.support.scheduler_bench import START_MS, Bench

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
MINUTELY = {"kind": "cron", "expr": "* * * * *", "tz": "UTC"}
HOURLY = {"kind": "cron", "expr": "0 * * * *", "tz": "UTC", "staggerMs": 0}


def far_ahead(bench: Bench) -> int:
    return bench.ask("service.status", ServiceStatus).deadlines_far_ahead


def test_b067_back_and_forth_runs_no_slot_twice_and_makes_no_burst(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    job.go_to(MINUTE)
    job.end()
    ready.clock.wall -= 2 * MINUTE
    for _ in range(60):
        ready.turn(SECOND)
    assert job.due == ("slot", 2 * MINUTE)  # not rewound
    assert len(job.runs()) == 1
    ready.clock.wall += 10 * MINUTE
    ready.turns()
    assert len(job.runs()) == 2
    slots = [slot for slot, _ in job.runs()]
    assert slots == sorted(set(slots))


def test_pitfall_23_a_day_forward_and_back_with_a_run_across_both(ready: Bench) -> None:
    running = Followed(ready, {"kind": "every", "everyMs": HOUR})
    other = Followed(ready, MINUTELY)
    ready.turn(HOUR)
    ready.turns()
    other.end()
    ready.clock.wall += DAY
    ready.turns(4)
    assert other.runs()[1:] == [(HOUR + DAY, "active")]  # one catch-up
    assert [state for _, state in running.runs()] == ["active"]  # its slots were consumed
    other.end()
    ready.clock.wall -= DAY
    for _ in range(5):
        ready.turn(SECOND)
    assert (len(other.runs()), len(running.runs())) == (2, 1)
    running.end()
    assert running.due == ("slot", DAY + 2 * HOUR)


def test_b068_deadlines_that_a_wrong_clock_left_are_counted_until_they_are_recomputed(ready: Bench) -> None:
    ready.clock.wall += 70 * 365 * DAY
    ready.turn()
    job, daily = Followed(ready, HOURLY), Followed(ready, {"kind": "every", "everyMs": DAY})
    ready.clock.wall -= 70 * 365 * DAY
    assert far_ahead(ready) == 0
    for _ in range(3):
        ready.turn(SECOND)
    assert far_ahead(ready) == 2
    assert job.now.state.next_run_at_ms == job.zero_ms + HOUR
    ready.crash()
    ready.reconcile()
    ready.turn(SECOND)
    ready.turn(SECOND)
    assert far_ahead(ready) == 2  # not forgotten
    for one, interval in ((job, HOUR), (daily, DAY)):
        edited = one.reschedule()
        due_ms = edited.state.next_run_at_ms or 0
        assert 0 < due_ms - ready.clock.wall <= interval
        assert (due_ms - one.zero_ms) % HOUR == 0  # the grid is kept
    ready.turn(SECOND)
    ready.turn(SECOND)
    assert far_ahead(ready) == 0
    passed_ms = 0
    while passed_ms < HOUR:
        passed_ms += SECOND
        ready.turn(SECOND)
    assert [state for _, state in job.runs()] == ["active"]


@pytest.mark.parametrize("every_ms", [MINUTE, 100 * 365 * DAY])
@pytest.mark.parametrize("remedy", ["off and on", "reschedule"])
def test_an_interval_that_was_made_by_a_clock_that_was_ahead_begins_with_the_next_edit(
    ready: Bench, every_ms: int, remedy: str
) -> None:
    ready.clock.wall += 30 * DAY
    job = Followed(ready, {"kind": "every", "everyMs": every_ms})
    ready.clock.wall -= 30 * DAY
    for _ in range(3):
        ready.turn(SECOND)
    if remedy == "reschedule":
        job.reschedule()
    else:
        job.edit(enabled=False)
        job.edit(enabled=True)
    due_ms = job.now.state.next_run_at_ms or 0
    assert 0 < due_ms - ready.clock.wall <= every_ms
    assert job.now.flag is None
    for _ in range(2):
        ready.turn(SECOND)
    assert far_ahead(ready) == 0


def test_an_interval_that_is_to_begin_later_is_no_fault_of_the_clock(ready: Bench) -> None:
    later = Followed(ready, {"kind": "every", "everyMs": HOUR, "anchorMs": ready.clock.wall + 30 * DAY})
    ready.clock.wall -= 5 * MINUTE
    for _ in range(3):
        ready.turn(SECOND)
    assert far_ahead(ready) == 1  # made by the clock that was ahead, so nobody can tell
    ready.clock.wall += 10 * MINUTE
    ready.turn(SECOND)
    ready.clock.wall -= MINUTE
    for _ in range(3):
        ready.turn(SECOND)
    assert far_ahead(ready) == 0
    later.reschedule()
    assert later.due == ("slot", 30 * DAY)


def test_b067_after_the_clock_went_back_nothing_new_is_taken_for_missed(ready: Bench) -> None:
    """The clock was ahead at the start, and is corrected: what is made, edited or retried since then is due as ever."""
    failing = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + SECOND)}, deleteAfterRun=False)
    failing.go_to(2 * SECOND)
    ready.clock.wall -= 2 * HOUR
    ready.turn(SECOND)
    failing.fail(Reason.TIMED_OUT)
    minutely = [Followed(ready, MINUTELY) for _ in range(7)]
    once = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + 5 * MINUTE)}, deleteAfterRun=False)
    for _ in range(6 * 60):
        ready.turn(SECOND)
        for run_id, state in ready.states().items():
            if state == "active":
                ready.report(run_id)
    assert [len(job.runs()) for job in minutely] == [6] * 7
    assert [job.decisions() for job in minutely] == [[]] * 7
    assert [slot for slot, _ in once.runs()] == [5 * MINUTE]
    assert len(failing.runs()) <= 2


def test_what_was_put_off_by_a_clock_that_was_ahead_is_counted_too(ready: Bench) -> None:
    """Catch-up, retry and backoff deadlines: what led to them is still to come."""
    hourly = [Followed(ready, HOURLY) for _ in range(12)]
    ready.clock.wall += 300 * DAY
    for _ in range(3):
        ready.turn(SECOND)
    assert "catch_up" in {str((job.due or ("",))[0]) for job in hourly}
    failing = Followed(ready, MINUTELY | {"expr": "*/5 * * * * *"})
    failing.go_to(5 * SECOND)
    failing.fail()
    assert (failing.due or ("",))[0] == "backoff"
    assert far_ahead(ready) == 0
    ready.clock.wall -= 300 * DAY
    for _ in range(3):
        ready.turn(SECOND)
    assert far_ahead(ready) == 13
    for job in (*hourly, failing):
        job.reschedule()
    for _ in range(2):
        ready.turn(SECOND)
    assert far_ahead(ready) == 0


def test_b013_a_schedule_without_any_further_slot_is_flagged(ready: Bench) -> None:
    """Where one was stored, and where a year limits it."""
    year = dt.datetime.fromtimestamp(ready.clock.wall / 1000, dt.UTC).year
    over = Followed(ready, {"kind": "cron", "expr": f"0 * * * * * {year}", "tz": "UTC"})
    never = Followed(ready, HOURLY)
    assert over.now.status == "idle"
    ready.clock.wall = round(dt.datetime(year, 12, 31, 23, 59, 1, tzinfo=dt.UTC).timestamp() * 1000)
    for _ in range(3):
        ready.turn(SECOND)
    assert over.now.flag == "the schedule has no further slot"
    assert [state for _, state in over.runs()] == ["active"]
    ready.connection.execute(
        "UPDATE jobs SET definition = replace(definition, '0 * * * *', '0 0 30 2 *') WHERE job_id = ?", (never.view.id,)
    )
    ready.connection.execute("UPDATE job_state SET next_due_ms = NULL")
    ready.crash()
    assert never.now.flag == "the schedule has no further slot"


def test_a_clock_that_was_set_back_while_nobody_looked_is_noticed(ready: Bench) -> None:
    Followed(ready, HOURLY)
    ready.clock.wall -= 30 * DAY
    ready.crash()
    ready.reconcile()
    ready.turn(SECOND)
    ready.turn(SECOND)
    assert far_ahead(ready) == 1


def test_without_a_step_nothing_is_reviewed(ready: Bench) -> None:
    Followed(ready, HOURLY)
    ready.turn(SECOND)
    assert ready.world.review.position is None


def test_b073_b074_the_loop_sleeps_at_most_a_second(ready: Bench) -> None:
    yearly = Followed(ready, {"kind": "cron", "expr": "0 4 1 1 *", "tz": "UTC"})
    ready.turns()
    assert 0 < max(ready.ports.waited_ms) <= 1_000
    minutely = Followed(ready, MINUTELY)
    ready.crash()
    ready.reconcile()
    for minute in range(1, 4):
        minutely.go_to(minute * MINUTE)
        minutely.end()
    assert [slot for slot, _ in minutely.runs()] == [MINUTE, 2 * MINUTE, 3 * MINUTE]
    assert yearly.runs() == []


def test_b076_after_2038(ready: Bench) -> None:
    ready.clock.wall = 2_147_483_640_000
    ready.turn()
    job = Followed(ready, {"kind": "cron", "expr": "* * * * *", "tz": "UTC"})
    once = Followed(ready, {"kind": "at", "at": "2039-01-01"})
    job.go_to(MINUTE)  # 2^31 seconds are eight seconds from here
    assert [state for _, state in job.runs()] == ["active"]
    assert once.now.state.next_run_at_ms == 2_177_452_800_000


# zones


@pytest.fixture
def other_zones(tmp_path: Path) -> None:
    """Berlin's clocks become Tokyo's with the next release of the database."""
    tokyo = importlib.resources.files("tzdata").joinpath("zoneinfo/Asia/Tokyo").read_bytes()
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes(tokyo)
    zoneinfo.reset_tzpath([str(tmp_path), *zoneinfo.TZPATH])


@pytest.fixture
def zones_restored() -> Iterator[None]:
    yield
    zoneinfo.reset_tzpath()
    zone_database.forget()


def test_a_new_zone_database_moves_the_deadlines_that_it_concerns(
    ready: Bench, zones_restored: None, request: pytest.FixtureRequest
) -> None:
    berlin = Followed(ready, {"kind": "cron", "expr": "0 12 * * *", "tz": "Europe/Berlin"})
    often = Followed(ready, {"kind": "cron", "expr": "*/5 * * * *", "tz": "Europe/Berlin"})
    paris = Followed(ready, {"kind": "cron", "expr": "0 12 * * *", "tz": "Europe/Paris"})
    deadlines = [job.due for job in (berlin, often, paris)]
    request.getfixturevalue("other_zones")
    assert [job.due for job in (berlin, often, paris)] == deadlines
    for _ in range(62):
        ready.turn(SECOND)
    assert [job.due for job in (often, paris)] == deadlines[1:]
    schedule = berlin.now.schedule
    assert schedule is not None
    moved_ms = next_slot_ms(schedule, job_id=berlin.view.id, after_ms=ready.clock.wall)
    assert berlin.now.state.next_run_at_ms == moved_ms
    assert berlin.due != deadlines[0]


def test_zones_that_changed_between_two_lives(
    ready: Bench, zones_restored: None, request: pytest.FixtureRequest
) -> None:
    berlin = Followed(ready, {"kind": "cron", "expr": "0 12 * * *", "tz": "Europe/Berlin"})
    before = berlin.due
    request.getfixturevalue("other_zones")
    ready.crash()
    ready.reconcile()
    ready.turn(SECOND)
    ready.turn(SECOND)
    assert berlin.due != before


def test_a_zone_change_that_leaves_a_job_without_any_slot_flags_it(
    ready: Bench, zones_restored: None, request: pytest.FixtureRequest
) -> None:
    """Its last slot is three hours ahead in Berlin; by Tokyo's clocks that time is over."""
    assert ready.clock.wall == START_MS
    last = Followed(ready, {"kind": "cron", "expr": "0 0 12 15 1 * 2027", "tz": "Europe/Berlin"})
    assert last.due is not None
    request.getfixturevalue("other_zones")
    for _ in range(62):
        ready.turn(SECOND)
    state = last.now.state
    assert state.next_run_at_ms is None
    assert last.now.flag == "the schedule has no further slot"


def test_slots_that_a_clock_that_was_ahead_has_served_are_looked_past(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    ready.clock.wall += HOUR  # a wrong time
    ready.turns()
    job.end()
    for minute in (61, 62):
        job.go_to(minute * MINUTE)
        job.end()
    ready.clock.wall -= 3 * MINUTE
    ready.turns()
    assert [slot for slot, _ in job.runs()] == [60 * MINUTE, 61 * MINUTE, 62 * MINUTE]
    planned = job.reschedule()
    assert planned.state.next_run_at_ms == job.zero_ms + 63 * MINUTE
    assert ready.job(job.view).state.consumed_slots == 0


def test_a_slot_that_was_run_because_it_was_due_is_not_run_again_after_the_clock_went_back(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 2 * MINUTE})
    ready.ask("service.pause", dict)
    ready.turn(2 * MINUTE + 5 * SECOND)
    assert ready.run_now(job.view, "due").enqueued
    ready.ask("service.resume", dict)
    ready.turns()
    job.end()
    ready.clock.wall -= MINUTE
    ready.turns()
    job.reschedule()
    job.go_to(5 * MINUTE)
    assert [slot for slot, _ in job.runs()] == [2 * MINUTE, 4 * MINUTE]


def test_a_run_by_hand_of_a_clock_that_was_ahead_uses_no_later_slot_up(ready: Bench) -> None:
    job = Followed(ready, HOURLY)
    ready.turn(DAY)
    ready.turns()
    job.end()
    ready.start(job.view)
    job.end()
    ready.clock.wall -= DAY
    ready.turns()
    at_ms = ready.clock.wall + HOUR
    assert job.edit(schedule={"kind": "at", "at": str(at_ms)}).state.next_run_at_ms == at_ms
