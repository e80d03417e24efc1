"""Reports of users of other schedulers, replayed on the bench: slots that were missed or came all at once. The number
in a name is the report's."""

import logging
import time

import pytest

from cronward.protocol.config import Capacity, Config
from cronward.protocol.views import JobList, RunList
from cronward.protocol.why import Cause
from cronward.schedule.at import parse_at
from tests.support.following import Followed, end_all, pass_to, restart_at
from tests.support.scheduler_bench import Bench

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def instants(*texts: str) -> list[int]:
    return [parse_at(text) for text in texts]


def test_b017_a_leap_days_slot_that_was_missed_is_found_from_the_next_leap_day(ready: Bench) -> None:
    pass_to(ready, "2028-02-29T12:00Z")
    job = Followed(ready, {"kind": "cron", "expr": "15 22 29 2 *", "tz": "UTC"})
    restart_at(ready, "2032-02-29T00:00Z")
    assert job.slots() == instants("2028-02-29T22:15Z")
    assert job.next_ms == parse_at("2032-02-29T22:15Z")
    last = job.why()
    assert (last.cause, last.slot_ms) == (Cause.RUNNING, parse_at("2028-02-29T22:15Z"))


@pytest.mark.parametrize("suspended", [True, False], ids=["suspended", "stopped"])
def test_b071_b080_what_is_overdue_is_spread_within_capacity_while_clients_are_answered(
    bench: Bench, suspended: bool
) -> None:
    """Sixty jobs, of half a minute each: five at once by the pace and three by capacity, then one each five seconds."""
    bench.config = Config(capacity=Capacity(3))
    bench.crash()
    bench.reconcile()
    jobs = [Followed(bench, {"kind": "every", "everyMs": DAY + number}) for number in range(60)]
    cpu_s = time.process_time()
    if suspended:
        bench.clock.wall += DAY + 2 * HOUR  # the monotonic clock stood still
    else:
        bench.clock.advance(DAY + 2 * HOUR)
        bench.crash()
        bench.reconcile()
    assert bench.ask("cron.list", JobList, {"limit": 100}).total == 60  # answered in the turn that it came in
    assert time.process_time() - cpu_s < 1
    bench.turns()
    woken_ms = bench.clock.wall
    began: dict[str, int] = {}
    while len(began) < 60 or "active" in bench.states().values():
        passed_ms = bench.clock.wall - woken_ms
        assert passed_ms < HOUR
        assert bench.ask("cron.list", JobList, {"limit": 100}).total == 60
        states = bench.states()
        assert len(states) <= 5 + passed_ms // (5 * SECOND)
        active = [run_id for run_id, state in states.items() if state == "active"]
        assert len(active) <= 3
        assert len(active) == 3 or passed_ms > MINUTE, "capacity that is there is used"
        for run_id in active:
            if bench.clock.wall - began.setdefault(run_id, bench.clock.wall) >= 30 * SECOND:
                bench.report(run_id)
        bench.turn(SECOND)
    assert [job.runs() for job in jobs] == [[(DAY + number, "ok")] for number in range(60)]


def office_jobs(bench: Bench) -> list[Followed]:
    """Five of them, at 11:00, 11:06, ... 11:24, which are not run later than half an hour after their time."""
    pass_to(bench, "2027-06-01T08:00Z")
    late = {"maxAgeSeconds": 1800}
    return [
        Followed(bench, {"kind": "cron", "expr": f"{minute} 11 * * *", "tz": "UTC"}, catchUp=late)
        for minute in range(0, 30, 6)
    ]


@pytest.mark.parametrize(
    ("restart", "missed"),
    [("22:10", 5), ("11:30:00.001", 1), ("11:30", 0)],
)
def test_b079_what_is_too_late_is_left_out_and_each_slot_says_so(ready: Bench, restart: str, missed: int) -> None:
    jobs = office_jobs(ready)
    restart_at(ready, f"2027-06-01T{restart}Z")
    now_ms = ready.clock.wall
    times = [parse_at(f"2027-06-01T11:{minute:02}Z") for minute in range(0, 30, 6)]
    for job, slot_ms in zip(jobs[:missed], times[:missed], strict=True):
        assert job.runs() == []
        assert job.decisions() == [("dropped", slot_ms - job.zero_ms, now_ms - job.zero_ms)]
        said = job.why(slot_ms)
        assert (said.cause, said.slot_ms, said.run) == (Cause.DOWN, slot_ms, None)
    for job, slot_ms in zip(jobs[missed:], times[missed:], strict=True):
        assert job.slots() == [slot_ms]
        assert job.decisions() == []
    assert [job.next_ms for job in jobs] == [slot_ms + DAY for slot_ms in times]


@pytest.mark.parametrize(("suspended", "cause"), [(True, Cause.DROPPED), (False, Cause.DOWN)])
def test_b086_log_history_and_why_tell_the_same_of_ten_missed_slots(
    ready: Bench,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    suspended: bool,
    cause: Cause,
) -> None:
    """One is run, nine are left out: neither is more or less anywhere."""
    monkeypatch.setattr(logging.getLogger("cronward"), "propagate", True)
    caplog.set_level(logging.INFO, "cronward")
    job = Followed(ready, {"kind": "cron", "expr": "* * * * *", "tz": "UTC"})
    if suspended:
        ready.clock.wall += 10 * MINUTE + 3 * SECOND
    else:
        ready.clock.advance(10 * MINUTE + 3 * SECOND)
        ready.crash()
        ready.reconcile()
    ready.turns()
    missed = [job.zero_ms + number * MINUTE for number in range(1, 11)]
    (told,) = [record.__dict__["fields"] for record in caplog.records if record.__dict__["event"] == "slot.missed"]
    left_out = [slot_ms for slot_ms in missed if told["slot_ms"] <= slot_ms <= told["until_ms"]]
    assert (told["decision"], left_out) == ("dropped", missed[:-1])
    history = ready.ask("cron.runs", RunList, {"id": job.view.id, "live": True})
    assert [entry.slot_ms for entry in history.entries] == missed[-1:]
    assert [job.why(slot_ms).cause for slot_ms in missed] == [cause] * 9 + [Cause.RUNNING]
    (run_id,) = ready.states()
    stands_for = [job.why(slot_ms).run for slot_ms in missed]
    assert [view.run_id if view else None for view in stands_for] == [run_id] * 10
    assert job.now.state.consumed_slots == 0  # no slot came while the job ran


@pytest.mark.parametrize("stall_ms", [9 * SECOND, 40 * SECOND], ids=["slow", "missed"])
def test_b094_a_busy_machine_runs_each_daily_job_once_a_day_with_its_own_slot(ready: Bench, stall_ms: int) -> None:
    """Fifty jobs of one minute: the loop gets a turn now and then, eight runs at a time end in it."""
    pass_to(ready, "2027-06-01T08:00Z")
    jobs = [Followed(ready, {"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"}) for _ in range(50)]
    expected = instants("2027-06-01T09:00Z", "2027-06-02T09:00Z", "2027-06-03T09:00Z")
    for day, slot_ms in enumerate(expected):
        ready.turn(slot_ms - SECOND - ready.clock.wall)
        for _ in range(40):
            ready.turn(stall_ms)
            end_all(ready)
        ready.turn(HOUR - 40 * stall_ms)
        assert [job.slots() for job in jobs] == [expected[: day + 1]] * 50
    assert set(ready.states().values()) == {"ok"}
    ((late_ms,),) = ready.sql("SELECT max(activated_ms - slot_ms) FROM runs")
    assert isinstance(late_ms, int)
    assert late_ms > MINUTE, "some of them came late"
