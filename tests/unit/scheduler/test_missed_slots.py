"""Slots that came while nobody could serve them: after a stop, a pause, a suspend or a step of the clock."""

import pytest

from cronward.protocol.config import CatchUpConfig, Config
from cronward.protocol.launch import RunState
from cronward.protocol.outcome import Reason
from cronward.protocol.views import RunView
from cronward.protocol.why import Cause
from tests.support.following import Followed
from tests.support.scheduler_bench import Bench, Refusal

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
HOURLY = {"kind": "cron", "expr": "0 * * * *", "tz": "UTC", "staggerMs": 0}
MINUTELY = {"kind": "cron", "expr": "* * * * *", "tz": "UTC"}
DAILY = {"kind": "every", "everyMs": DAY}


def down_for(bench: Bench, ms: int) -> None:
    """The scheduler is killed and comes back later."""
    bench.clock.advance(ms)
    bench.crash()
    bench.reconcile()
    bench.turns(4)


# one job


def test_b085_b089_one_run_with_the_last_slot_and_then_the_schedule(ready: Bench) -> None:
    job = Followed(ready, HOURLY)
    down_for(ready, 8 * HOUR + 5 * MINUTE)
    assert job.runs() == [(8 * HOUR, "active")]
    assert job.due == ("slot", 9 * HOUR)
    assert job.decisions() == [("dropped", HOUR, 8 * HOUR - 1)]


def test_b083_a_hundred_and_eighty_missed_slots_stop_nothing(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    down_for(ready, 180 * MINUTE)
    assert job.runs() == [(180 * MINUTE, "active")]
    job.end()
    job.go_to(181 * MINUTE)
    assert [state for _, state in job.runs()] == ["ok", "active"]


def test_b092_restarts_do_not_move_an_interval(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": HOUR})
    for _ in range(6):
        job.go_to(ready.clock.wall - job.zero_ms + 2 * SECOND)
        down_for(ready, 50 * MINUTE - 2 * SECOND)
        if job.runs()[-1:] and job.runs()[-1][1] == "active":
            job.end()
    assert [slot for slot, _ in job.runs()] == [HOUR * k for k in range(1, 6)]


def test_none_waits_for_the_next_slot(ready: Bench) -> None:
    job = Followed(ready, HOURLY, catchUp={"policy": "none"})
    down_for(ready, 2 * HOUR + MINUTE)
    assert job.runs() == []
    assert job.due == ("slot", 3 * HOUR)
    assert job.decisions() == [("dropped", HOUR, 2 * HOUR + MINUTE)]


def test_none_still_runs_what_is_hardly_late(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, catchUp={"policy": "none"})
    down_for(ready, MINUTE + 1_500)
    assert job.runs() == [(MINUTE, "active")]


def test_all_runs_each_missed_slot_in_order_up_to_the_bound(ready: Bench) -> None:
    job = Followed(ready, HOURLY, catchUp={"policy": "all", "maxRuns": 3})
    down_for(ready, 5 * HOUR + MINUTE)
    start_ms = ready.clock.wall - job.zero_ms
    assert job.runs() == [(3 * HOUR, "active")]
    assert job.due == ("catch_up", start_ms + 5 * SECOND)
    job.go_to(start_ms + 6 * SECOND)
    assert len(job.runs()) == 1  # one live run a job: the next one waits
    job.end()
    job.go_to(start_ms + 11 * SECOND)
    job.end()
    job.go_to(start_ms + 17 * SECOND)
    assert job.runs() == [(3 * HOUR, "ok"), (4 * HOUR, "ok"), (5 * HOUR, "active")]
    assert job.due == ("slot", 6 * HOUR)


def test_all_gives_way_to_the_next_slot(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, catchUp={"policy": "all", "maxRuns": 100})
    down_for(ready, 10 * MINUTE + 52 * SECOND)
    start_ms = ready.clock.wall - job.zero_ms
    job.end()
    job.go_to(start_ms + 5 * SECOND)
    job.end()
    assert job.due == ("slot", 11 * MINUTE)
    assert [slot for slot, _ in job.runs()] == [MINUTE, 2 * MINUTE]


def test_b095_a_one_shot_runs_late_or_is_visibly_missed(ready: Bench) -> None:
    late = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + 90 * SECOND)}, catchUp={"policy": "none"})
    old = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + 90 * SECOND)}, catchUp={"maxAgeSeconds": 60})
    ready.turn(5 * MINUTE)  # the process was stopped
    ready.turns()
    assert late.runs() == [(90 * SECOND, "active")]
    assert old.runs() == [(90 * SECOND, "skipped")]
    (run_id,) = (name for name, state in ready.states().items() if state == "skipped")
    assert ready.run(run_id).reason == Reason.MISSED
    assert old.now.status == "disabled"


def test_a_slot_that_came_while_its_run_outlived_the_scheduler_is_consumed(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    job.go_to(MINUTE)
    (run_id,) = ready.states()
    ready.clock.advance(10 * MINUTE)
    ready.crash()
    ready.reconcile({run_id: RunState.HELD})
    ready.turns()
    assert job.runs() == [(MINUTE, "active")]
    assert job.decisions() == [("consumed", 2 * MINUTE, 11 * MINUTE)]
    job.end()
    assert job.due == ("slot", 12 * MINUTE)


def test_the_queue_that_was_left_and_the_catch_up_are_one_run(ready: Bench) -> None:
    """Pitfall 9: requested before the crash, not started; the restart resumes it and invents nothing."""
    job = Followed(ready, HOURLY)
    job.bench.cannot_start = "no space"
    ready.turn(HOUR)
    ready.turn()
    assert job.runs() == [(HOUR, "queued")]
    ready.cannot_start = None
    down_for(ready, 5 * MINUTE)
    assert job.runs() == [(HOUR, "active")]


# many jobs


def test_pitfall_22_five_at_once_then_one_each_five_seconds_and_it_survives_a_restart(bench: Bench) -> None:
    bench.reconcile()
    jobs = [Followed(bench, {"kind": "every", "everyMs": DAY + number}) for number in range(12)]
    bench.clock.advance(DAY + HOUR)
    bench.crash()
    bench.reconcile()
    bench.turns()
    base_ms = bench.clock.wall
    assert [len(job.runs()) for job in jobs] == [1] * 5 + [0] * 7
    waiting = [job.now.state for job in jobs[5:]]
    assert [(state.next_run_at_ms or 0) - base_ms for state in waiting] == [5_000 * k for k in range(1, 8)]
    assert all(state.due_kind == "catch_up" for state in waiting)
    bench.turn(7 * SECOND)
    bench.turns(2)
    assert len(jobs[5].runs()) == 1
    # a second restart keeps what is still to come, and the edited one loses it
    edited = jobs[11].edit(schedule={"kind": "every", "everyMs": 3 * DAY})
    bench.crash()
    bench.reconcile()
    bench.turns()
    assert [job.now.state.next_run_at_ms for job in jobs[6:11]] == [base_ms + 5_000 * k for k in range(2, 7)]
    assert jobs[11].now.state.next_run_at_ms == edited.state.next_run_at_ms
    assert edited.state.due_kind == "slot"
    # each keeps its own slot
    jobs[6].go_to(base_ms + 10 * SECOND - jobs[6].zero_ms)
    assert jobs[6].runs() == [(DAY + 6, "active")]
    assert jobs[6].due == ("slot", 2 * (DAY + 6))


def test_a_deferral_that_is_past_after_another_restart_is_due_again(ready: Bench) -> None:
    jobs = [Followed(ready, {"kind": "every", "everyMs": DAY + number}) for number in range(7)]
    ready.clock.advance(DAY + HOUR)
    ready.crash()
    ready.reconcile()
    ready.turns()
    assert jobs[6].due is not None
    for job in jobs[:5]:
        job.end()
    down_for(ready, HOUR)
    assert [job.runs() for job in jobs[5:]] == [[(DAY + 5, "active")], [(DAY + 6, "active")]]


def test_a_thousand_overdue_minutely_jobs_do_not_starve(bench: Bench) -> None:
    bench.config = Config(catch_up=CatchUpConfig(immediate=5))
    bench.crash()
    bench.reconcile()
    for _ in range(1000):
        bench.post("cron.add", {"schedule": MINUTELY, "payload": {"kind": "command", "argv": ["/bin/true"]}})
    bench.turn()
    bench.clock.advance(30 * MINUTE + 7 * SECOND)
    bench.crash()
    bench.reconcile()
    bench.turns(20)
    ((catch_up,),) = bench.sql("SELECT count(*) FROM job_state WHERE due_kind = 'catch_up'")
    ((slots,),) = bench.sql("SELECT count(*) FROM job_state WHERE due_kind = 'slot'")
    assert (catch_up, slots) == (10, 990)
    assert len(bench.states()) == 5
    bench.turn(53 * SECOND)
    bench.turns(20)
    assert len(bench.states()) >= 1000 - 10


def test_b077_reading_changes_nothing(ready: Bench) -> None:
    job = Followed(ready, MINUTELY)
    ready.post("service.pause")
    ready.turn(MINUTE + SECOND)
    for method in ("cron.list", "service.status", "status.snapshot"):
        ready.post(method)
    ready.turn()
    assert job.due == ("slot", MINUTE)
    ready.post("service.resume")
    ready.turns()
    assert job.runs() == [(MINUTE, "active")]


def test_a_pause_is_a_gap(ready: Bench) -> None:
    job = Followed(ready, HOURLY, catchUp={"policy": "none"})
    ready.post("service.pause")
    ready.turn()
    for _ in range(61 * 6):
        ready.turn(10 * SECOND)
    ready.post("service.resume")
    ready.turns()
    assert job.runs() == []
    assert job.due == ("slot", 2 * HOUR)


def test_b095_an_on_time_burst_is_no_gap(ready: Bench) -> None:
    """A loop that is busy for a while with slots of one instant does not take them for missed."""
    jobs = [Followed(ready, MINUTELY, catchUp={"policy": "none"}) for _ in range(100)]
    ready.turn(MINUTE)
    for _ in range(5):
        ready.turn(900)
    assert all(len(job.runs()) == 1 for job in jobs)


def test_the_policy_is_checked(ready: Bench) -> None:
    for bad in ({"policy": "some"}, {"maxRuns": 0}, {"maxAgeSeconds": -1}, {"misfire": 3}):
        with pytest.raises(Refusal, match="catchUp"):
            Followed(ready, MINUTELY, catchUp=bad)
    assert ready.events("run", RunView) == []


def test_b070_what_was_left_out_is_told_in_one_place(ready: Bench) -> None:
    """Ten slots missed: one run, and one row that names the others; nothing is made up as history."""
    job = Followed(ready, MINUTELY)
    ready.clock.wall += 10 * MINUTE + SECOND  # the lid was closed
    ready.turns()
    assert job.runs() == [(10 * MINUTE, "active")]
    assert job.decisions() == [("dropped", MINUTE, 10 * MINUTE - 1)]
    assert len(ready.states()) == 1


def test_b203_fifty_jobs_added_at_once_all_fire(ready: Bench) -> None:
    for number in range(50):
        payload = {"kind": "command", "argv": ["/bin/true"]}
        ready.post("cron.add", {"name": f"job {number}", "schedule": MINUTELY, "payload": payload})
    ready.turn()
    assert ready.sql("SELECT count(*) FROM jobs") == [(50,)]
    ready.turn(MINUTE)
    ready.turns()
    assert len(ready.states()) == 50


def test_b193_times_that_are_past_are_refused_or_run_at_once(ready: Bench) -> None:
    def at(ms_ago: int) -> Followed:
        return Followed(ready, {"kind": "at", "at": str(ready.clock.wall - ms_ago)})

    with pytest.raises(Refusal, match="in the past"):
        at(HOUR)
    jobs = [at(SECOND), at(0)]
    ready.turns()
    assert [[state for _, state in job.runs()] for job in jobs] == [["active"], ["active"]]


# a run that is live when the missed slots are looked at


def asleep_and_run(job: Followed, ms: int) -> None:
    """Nobody looks for so long; the first thing that is seen then is that it is run by hand."""
    job.bench.post("cron.run", {"id": job.view.id, "mode": "force"})
    job.bench.turn(ms)
    job.bench.turns(4)


def test_all_waits_for_a_run_that_was_asked_for_after_the_missed_slots(ready: Bench) -> None:
    job = Followed(ready, HOURLY, catchUp={"policy": "all"})
    asleep_and_run(job, 3 * HOUR + 30 * MINUTE)
    assert len(job.runs()) == 1
    job.end()
    for _ in range(60):
        ready.turn(SECOND)
        if job.runs()[-1][1] == "active":
            job.end()
    assert [slot for slot, _ in job.runs()][1:] == [HOUR, 2 * HOUR, 3 * HOUR]


def test_a_run_by_hand_of_a_moment_before_swallows_no_missed_slot(ready: Bench) -> None:
    job = Followed(ready, DAILY)
    asleep_and_run(job, DAY + MINUTE)
    job.end()
    job.go_to(DAY + 2 * MINUTE)
    assert [slot for slot, _ in job.runs()][1:] == [DAY]
    assert not [made for made in job.decisions() if made[0] == "consumed"]


def test_a_one_shot_is_served_by_the_run_by_hand_after_it(ready: Bench) -> None:
    job = Followed(ready, {"kind": "at", "at": str(ready.clock.wall + MINUTE)}, deleteAfterRun=False)
    asleep_and_run(job, 2 * MINUTE)
    job.end()
    job.go_to(HOUR)
    assert len(job.runs()) == 1


def test_what_there_was_no_time_for_is_noted(ready: Bench) -> None:
    job = Followed(ready, MINUTELY, catchUp={"policy": "all"})
    down_for(ready, 5 * MINUTE + 57 * SECOND)
    first = job.runs()[0][0]
    assert job.due == ("slot", 6 * MINUTE)
    assert job.decisions()[-1] == ("dropped", first + MINUTE, 5 * MINUTE + 57 * SECOND)
    assert job.why(job.zero_ms + first + MINUTE).cause is Cause.DOWN


@pytest.mark.parametrize(("policy", "then"), [("none", []), ("latest", [3 * MINUTE])])
def test_a_run_that_ends_in_a_pause_makes_no_slot_of_it_less_missed(ready: Bench, policy: str, then: list[int]) -> None:
    job = Followed(ready, MINUTELY, catchUp={"policy": policy})
    job.go_to(MINUTE)
    ready.ask("service.pause", dict)
    ready.turn(2 * MINUTE + 30 * SECOND)
    job.end()
    ready.ask("service.resume", dict)
    ready.turns()
    assert [slot for slot, _ in job.runs()][1:] == then
    assert job.due == ("slot", 4 * MINUTE)
    assert job.why(job.zero_ms + 2 * MINUTE).cause is Cause.PAUSED


def test_a_spacing_of_nothing_waits_for_the_run_all_the_same(bench: Bench) -> None:
    bench.config = Config(catch_up=CatchUpConfig(spacing_s=0))
    bench.crash()
    bench.reconcile()
    job = Followed(bench, HOURLY, catchUp={"policy": "all"})
    bench.turn(3 * HOUR + MINUTE)
    bench.turns(10)
    assert [slot for slot, _ in job.runs()] == [HOUR]
    assert (job.next_ms or 0) > bench.clock.wall
    for _ in range(5):
        job.end()
        bench.turn(2 * SECOND)
        bench.turns()
        if job.runs()[-1][1] != "active":
            break
    assert [slot for slot, _ in job.runs()] == [HOUR, 2 * HOUR, 3 * HOUR]


@pytest.mark.parametrize("reason", [Reason.EXIT_CODE, Reason.TIMED_OUT])
def test_a_late_run_that_fails_loses_none_of_the_others(ready: Bench, reason: Reason) -> None:
    job = Followed(ready, HOURLY, catchUp={"policy": "all"}, retry={"preset": "goclaw"})
    down_for(ready, 4 * HOUR + MINUTE)
    ended_ms = ready.clock.wall - job.zero_ms
    job.fail(reason)
    assert job.due == ("catch_up", ended_ms + 30 * SECOND)  # the first step of the ladder
    assert job.why(job.zero_ms + 2 * HOUR).slot_ms == job.zero_ms + 2 * HOUR
    for _ in range(120):
        ready.turn(SECOND)
        if job.runs()[-1][1] == "active":
            job.end()
    assert [slot for slot, _ in job.runs()] == [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR]
    assert job.due == ("slot", 5 * HOUR)
