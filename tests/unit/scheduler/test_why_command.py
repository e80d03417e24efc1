"""cron.why over the real actor and database: the facts are kept where they arise, and explain what was seen."""

import pytest

from cronward.protocol.config import Capacity, Config, Retention, RetryConfig, Snapshot
from cronward.protocol.job import Cron
from cronward.protocol.launch import RunState
from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import JobView, WhyView
from cronward.protocol.why import Cause
from cronward.schedule import around
from cronward.schedule.at import parse_at
from tests.support.following import Followed
from tests.support.scheduler_bench import START_MS, Bench, Refusal

HOUR_MS = 3_600_000


def why(bench: Bench, job: JobView, at_ms: int | None = None) -> WhyView:
    asked = {"id": job.id} if at_ms is None else {"id": job.id, "atMs": at_ms}
    return bench.ask("cron.why", WhyView, asked)


def pass_time(bench: Bench, ms: int, step_ms: int = 1_000) -> None:
    """By the second, as the loop would, and every run ends well at once."""
    for _ in range(ms // step_ms):
        bench.turn(step_ms)
        finish_all(bench)


def finish_all(bench: Bench) -> None:
    for run_id, state in bench.states().items():
        if state == "active":
            bench.report(run_id)


def hourly(bench: Bench) -> JobView:
    """Due each hour from now; the first slot is an hour away."""
    return bench.every(HOUR_MS)


def first_slot_ms(job: JobView) -> int:
    assert job.next_run_at_ms is not None
    return job.next_run_at_ms


def leap_to(bench: Bench, at_ms: int) -> None:
    """To just before an instant, and past it by the second."""
    bench.clock.advance(at_ms - 2_000 - bench.clock.wall)
    bench.reconcile()
    pass_time(bench, 5_000)


def test_to_come_then_ran(ready: Bench) -> None:
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    assert why(ready, job).cause is Cause.COMING
    leap_to(ready, slot_ms)
    said = why(ready, job)
    assert (said.cause, said.slot_ms) == (Cause.RAN, slot_ms)
    assert said.run is not None
    assert said.run.status == "ok"
    assert said.late_ms is not None
    assert said.late_ms <= 2_000
    assert [slot.at_ms for slot in said.nearest] == [slot_ms + HOUR_MS]  # it was made at the one before


def test_consumed_names_the_run_that_was_live(ready: Bench) -> None:
    job = ready.every(10_000)
    slot_ms = first_slot_ms(job)
    run_id = ready.start(job)
    for _ in range(25):
        ready.turn(1_000)
    for at_ms in (slot_ms, slot_ms + 10_000):
        said = why(ready, job, at_ms)
        assert (said.cause, said.run.run_id if said.run else None) == (Cause.CONSUMED, run_id)


def test_paused_by_whom_and_until_when(ready: Bench) -> None:
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    paused_ms = ready.clock.wall
    ready.ask("service.pause", dict)
    ready.clock.advance(2 * HOUR_MS + 60_000)
    ready.reconcile()
    waits = why(ready, job, slot_ms)
    assert (waits.cause, waits.detail) == (Cause.WAITING, "the service is paused")
    ready.ask("service.resume", dict)
    pass_time(ready, 3_000)
    missed = why(ready, job, slot_ms)
    assert (missed.cause, missed.by, missed.since_ms) == (Cause.PAUSED, "uid 0", paused_ms)
    assert missed.run is not None  # the latest missed slot was run
    late = why(ready, job, slot_ms + HOUR_MS)
    assert (late.cause, late.delayed_by) == (Cause.RAN, Cause.PAUSED)


def test_down_from_and_until(ready: Bench) -> None:
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    seen_ms = ready.world.started_ms
    ready.connection.close()
    ready.clock.advance(3 * HOUR_MS + 60_000)
    started_ms = ready.clock.wall
    ready.begin()
    ready.reconcile()
    pass_time(ready, 3_000)
    said = why(ready, job, slot_ms)
    assert (said.cause, said.since_ms, said.until_ms) == (Cause.DOWN, seen_ms, started_ms)
    assert why(ready, job, slot_ms + 2 * HOUR_MS).delayed_by is Cause.DOWN


def test_asleep_is_neither_down_nor_paused(ready: Bench) -> None:
    job = hourly(ready)
    pass_time(ready, 3_000)
    slot_ms = first_slot_ms(job)
    ready.clock.wall += 3 * HOUR_MS
    pass_time(ready, 3_000)
    assert why(ready, job, slot_ms).cause is Cause.DROPPED


def test_edits_are_told_with_who_and_when(ready: Bench) -> None:
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    ready.clock.advance(60_000)
    edited_ms = ready.clock.wall
    ready.ask("cron.update", JobView, {"id": job.id, "patch": {"schedule": {"kind": "every", "everyMs": 7_000_000}}})
    said = why(ready, job, slot_ms)
    assert (said.cause, said.by, said.since_ms) == (Cause.EDITED, "uid 0", edited_ms)
    assert why(ready, job, START_MS - HOUR_MS).cause is Cause.NOT_YET_CREATED


def test_disabled_and_enabled_again(ready: Bench) -> None:
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    off_ms = ready.clock.wall
    ready.ask("cron.update", JobView, {"id": job.id, "patch": {"enabled": False}})
    ready.clock.advance(HOUR_MS + 60_000)
    ready.ask("cron.update", JobView, {"id": job.id, "patch": {"enabled": True}})
    said = why(ready, job, slot_ms)
    assert (said.cause, said.by, said.since_ms) == (Cause.DISABLED, "uid 0", off_ms)


def test_a_removed_job_is_known_by_its_id(ready: Bench) -> None:
    job = hourly(ready)
    ready.ask("cron.remove", dict, {"id": job.id})
    said = why(ready, job, ready.clock.wall + HOUR_MS)
    assert (said.cause, said.by, said.job_name) == (Cause.REMOVED, "uid 0", "/bin/true")
    with pytest.raises(Refusal, match="not found"):
        ready.ask("cron.why", WhyView, {"id": "never-was"})


@pytest.mark.parametrize(
    ("at", "cause", "words"),
    [
        ("2027-03-14T07:00Z", Cause.COMING, "moved from"),
        ("2027-11-07T06:30Z", Cause.NOT_A_SLOT, None),
        ("2027-03-15T06:30Z", Cause.COMING, None),
    ],
)
def test_zone_changes_to_come(ready: Bench, at: str, cause: Cause, words: str | None) -> None:
    job = ready.add({"kind": "cron", "expr": "30 2 * * *", "tz": "America/New_York"})
    said = why(ready, job, parse_at(at))
    assert said.cause is cause
    assert (said.note is None) if words is None else (words in (said.note or ""))


def test_the_second_half_of_a_repeated_hour(ready: Bench) -> None:
    job = ready.add({"kind": "cron", "expr": "30 1 * * *", "tz": "America/New_York"})
    said = why(ready, job, parse_at("2027-11-07T06:30Z"))
    assert said.cause is Cause.SWALLOWED
    assert said.note == "2027-11-07 01:30 comes twice: it runs the first time only"


@pytest.mark.parametrize("at_ms", [8_640_000_000_000_000, -8_640_000_000_000_000, -62_135_596_801_000])
def test_the_ends_of_time(ready: Bench, at_ms: int) -> None:
    for schedule in ({"kind": "cron", "expr": "0 0 1 1 *", "tz": "Europe/Berlin"}, {"kind": "every", "everyMs": 1}):
        said = why(ready, ready.add(schedule), at_ms)
        assert said.cause in (Cause.NOT_YET_CREATED, Cause.NOT_A_SLOT, Cause.COMING)


def test_a_zone_that_is_gone(ready: Bench) -> None:
    """Whatever names it: the job, and every change that is kept."""
    job = ready.add({"kind": "cron", "expr": "0 9 * * *", "tz": "Europe/Berlin"})
    off = ready.add({"kind": "cron", "expr": "0 9 * * *", "tz": "Europe/Berlin"})
    ready.ask("cron.update", JobView, {"id": off.id, "patch": {"enabled": False}})
    ready.turn(1_000)
    ready.sql("UPDATE jobs SET definition = replace(definition, 'Europe/Berlin', 'Mars/Olympus')")
    ready.sql("UPDATE changes SET detail = replace(detail, 'Europe/Berlin', 'Mars/Olympus')")
    for at_ms in (None, START_MS + HOUR_MS):
        assert why(ready, job, at_ms).cause is Cause.FLAGGED
        assert why(ready, off, at_ms).cause is Cause.DISABLED


def test_a_run_that_waits_because_others_run(ready: Bench) -> None:
    ready.world.settings.snapshot = Snapshot(2, Config(capacity=Capacity(1)))
    running = ready.start(ready.add())
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    ready.clock.advance(slot_ms - ready.clock.wall)
    ready.reconcile({running: RunState.HELD})
    ready.turns()
    said = why(ready, job, slot_ms)
    assert said.cause is Cause.WAITING
    assert said.detail == "1 runs are active, and capacity.runs is 1"


def test_a_slot_to_come_inside_the_backoff_of_a_run_by_hand(ready: Bench) -> None:
    job = ready.every(20_000)
    ready.report(ready.start(job), Status.ERROR, Reason.EXIT_CODE)
    slot_ms = first_slot_ms(job)
    said = why(ready, job, slot_ms)
    assert (said.cause, said.until_ms) == (Cause.BACKOFF, ready.job(job).state.backoff_until_ms)
    assert why(ready, job, slot_ms + 20_000).cause is Cause.COMING


def test_the_second_half_of_a_repeated_hour_with_stagger(ready: Bench) -> None:
    job = ready.add({"kind": "cron", "expr": "30 1 * * *", "tz": "America/New_York", "staggerMs": 600_000})
    second_ms = parse_at("2027-11-07T06:30Z")
    schedule = job.schedule
    assert isinstance(schedule, Cron)
    shift_ms = around.staggered_ms(schedule, job_id=job.id, at_ms=0)
    assert shift_ms > 0
    assert why(ready, job, second_ms + shift_ms).cause is Cause.SWALLOWED
    assert why(ready, job, second_ms).cause is Cause.SWALLOWED


def test_a_retry_is_found_by_the_second_that_people_read(ready: Bench) -> None:
    job = ready.every(HOUR_MS)
    leapt_to = first_slot_ms(job)
    leap_to_without_ending(ready, leapt_to)
    ((run_id,),) = ready.sql("SELECT run_id FROM runs WHERE state = 'active'")
    ready.clock.advance(123)
    ready.report(str(run_id), Status.ERROR, Reason.TIMED_OUT)
    retry_ms = first_slot_ms(ready.job(job))
    second_ms = retry_ms // 1_000 * 1_000
    asked = {"id": job.id, "atMs": second_ms, "withinMs": 1_000}
    coming = ready.ask("cron.why", WhyView, asked)
    assert (coming.cause, coming.slot_ms, coming.detail) == (Cause.COMING, retry_ms, "a quick retry of its last run")
    pass_time(ready, 31_000)
    ran = ready.ask("cron.why", WhyView, asked)
    assert (ran.cause, ran.slot_ms) == (Cause.RAN, retry_ms)
    assert ready.ask("cron.why", WhyView, {"id": job.id, "atMs": second_ms}).cause is Cause.NOT_A_SLOT


def leap_to_without_ending(bench: Bench, at_ms: int) -> None:
    bench.clock.advance(at_ms - 1_000 - bench.clock.wall)
    bench.reconcile()
    for _ in range(3):
        bench.turn(1_000)


def test_a_one_shot_that_has_removed_itself_is_known_by_its_name(ready: Bench) -> None:
    job = ready.at(10_000, name="once")
    slot_ms = first_slot_ms(job)
    pass_time(ready, 60_000)
    said = ready.ask("cron.why", WhyView, {"id": "Once"})
    assert (said.job_id, said.cause, said.slot_ms) == (job.id, Cause.RAN, slot_ms)
    assert ready.ask("cron.why", WhyView, {"id": job.id}).cause is Cause.RAN
    gone = ready.ask("cron.why", WhyView, {"id": "once", "atMs": ready.clock.wall})
    assert (gone.cause, gone.by, gone.detail) == (Cause.REMOVED, "cronward", "its run went well")
    with pytest.raises(Refusal, match="CRON_JOB_NOT_FOUND"):
        ready.ask("cron.why", WhyView, {"id": "never"})


def test_a_job_that_is_gone_without_a_slot(ready: Bench) -> None:
    job = hourly(ready)
    ready.ask("cron.remove", dict, {"id": job.id})
    pass_time(ready, 5_000)
    said = ready.ask("cron.why", WhyView, {"id": job.id})
    assert (said.cause, said.by, said.nearest) == (Cause.REMOVED, "uid 0", [])


def test_a_run_by_hand_is_found_by_its_second(ready: Bench) -> None:
    job = hourly(ready)
    ready.clock.advance(1_234)
    run_id = ready.start(job)
    asked_ms = ready.run(run_id).slot_ms
    asked = {"id": job.id, "atMs": asked_ms // 1_000 * 1_000, "withinMs": 1_000}
    said = ready.ask("cron.why", WhyView, asked)
    assert (said.cause, said.slot_ms, said.run and said.run.run_id) == (Cause.RUNNING, asked_ms, run_id)


@pytest.mark.parametrize("ahead_ms", [0, 30 * HOUR_MS])
def test_what_was_forgotten_is_remembered_as_that(bench: Bench, ahead_ms: int) -> None:
    """Also a slot that a clock which was ahead had served before its time, and after a rule that keeps less."""
    bench.config = Config(retention=Retention(days=1))
    bench.crash()
    bench.reconcile()
    job = bench.every(12 * HOUR_MS)
    slot_ms = first_slot_ms(job)
    leap_to(bench, slot_ms)
    assert why(bench, job, slot_ms).cause is Cause.RAN
    bench.sql("UPDATE runs SET ended_ms = ended_ms - ?, started_ms = started_ms - ?", ahead_ms, ahead_ms)
    for _ in range(0 if ahead_ms else 3):
        bench.turn(12 * HOUR_MS)
        finish_all(bench)
    for _ in range(200):
        bench.turn(60_000)
        finish_all(bench)
    bench.sql("DELETE FROM runs WHERE forget_ms IS NOT NULL")
    bench.config = Config(retention=Retention(days=30))
    bench.crash()
    bench.reconcile()
    assert why(bench, job, slot_ms).cause is Cause.FORGOTTEN


def test_a_damaged_record_of_a_change_hides_no_other_job(ready: Bench) -> None:
    for name in ("first", "second"):
        ready.ask("cron.remove", dict, {"id": ready.every(HOUR_MS, name=name).id})
    ready.sql(
        "UPDATE changes SET detail = '{bad' WHERE action = 'removed' AND change = (SELECT max(change) FROM changes)"
    )
    assert ready.ask("cron.why", WhyView, {"id": "FIRST"}).job_name == "first"
    with pytest.raises(Refusal, match="CRON_JOB_NOT_FOUND"):
        ready.ask("cron.why", WhyView, {"id": "second"})


def test_the_end_of_a_backoff_that_a_run_by_hand_puts_off(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 10_000})
    job.go_to(10_000)
    job.fail()
    assert job.due == ("backoff", 40_000)
    ready.start(job.view)
    job.fail()
    said = job.why(job.zero_ms + 40_000)
    assert (said.cause, said.until_ms) == (Cause.BACKOFF, job.zero_ms + 70_000)


def test_a_pause_that_began_in_a_drain(ready: Bench) -> None:
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    ready.ask("service.drain", dict)
    ready.turn(1_000)
    paused_ms = ready.clock.wall
    ready.ask("service.pause", dict)
    ready.turn(1_000)
    ready.ask("service.pause", dict)  # it is paused already
    ready.crash()
    ready.reconcile()
    ready.turn(HOUR_MS + 60_000)
    ready.ask("service.resume", dict)
    pass_time(ready, 3_000)
    said = why(ready, job, slot_ms)
    assert (said.cause, said.delayed_by, said.by, said.since_ms) == (Cause.RAN, Cause.PAUSED, "uid 0", paused_ms)


@pytest.mark.parametrize(("patch", "action"), [({"enabled": False}, "updated"), (None, "removed")])
def test_the_edit_that_gave_a_slot_up_is_named(ready: Bench, patch: dict[str, object] | None, action: str) -> None:
    job = hourly(ready)
    slot_ms = first_slot_ms(job)
    ready.clock.advance(90 * 60_000)
    if patch is None:
        ready.ask("cron.remove", dict, {"id": job.id})
    else:
        ready.ask("cron.update", JobView, {"id": job.id, "patch": patch})
    said = why(ready, job, slot_ms)
    assert (said.cause, said.detail) == (Cause.DROPPED, f"the job was {action} by uid 0 before the slot was looked at")


def test_a_slot_that_waits_for_the_gap_after_a_run(bench: Bench) -> None:
    bench.config = Config(retry=RetryConfig(refire_gap_s=7))
    bench.crash()
    bench.reconcile()
    job = Followed(bench, {"kind": "cron", "expr": "*/15 * * * * *", "tz": "UTC"})
    job.go_to(15_000)
    job.go_to(27_000)
    job.end()
    assert job.due == ("slot", 34_000)
    (first, *_) = job.now.next_slots
    assert first.at_ms - job.zero_ms == 34_000
    assert (first.note or "").startswith("its slot waits until some time has passed since the last run: that of ")
    said = job.why(job.zero_ms + 34_000)
    assert (said.cause, said.detail) == (Cause.COMING, "its slot waits until some time has passed since the last run")
    job.go_to(31_000)
    assert job.reschedule().state.next_run_at_ms == job.zero_ms + 45_000
    assert job.why(job.zero_ms + 30_000).cause is Cause.DROPPED


def test_the_anchor_of_an_interval_is_no_slot_of_before_the_job(ready: Bench) -> None:
    job = hourly(ready)
    for at_ms in (ready.clock.wall - HOUR_MS, ready.clock.wall + 5_000):
        assert [slot.at_ms for slot in why(ready, job, at_ms).nearest] == [first_slot_ms(job)]


def test_the_slots_around_one_of_a_job_that_was_made_while_the_clock_was_ahead(ready: Bench) -> None:
    ready.turn(24 * HOUR_MS)
    job = Followed(ready, {"kind": "cron", "expr": "0 * * * *", "tz": "UTC", "staggerMs": 0})
    ready.clock.wall -= 24 * HOUR_MS
    ready.turns()
    job.edit(schedule={"expr": "*/30 * * * *"})
    next_ms = job.next_ms or 0
    assert [slot.at_ms for slot in job.why(next_ms).nearest] == [next_ms + HOUR_MS // 2]


def test_a_definition_that_cannot_be_read_is_flagged_before_its_slot_comes(ready: Bench) -> None:
    job = hourly(ready)
    ready.sql("UPDATE jobs SET definition = '{}'")
    assert why(ready, job, first_slot_ms(job)).cause is Cause.FLAGGED


def test_a_live_retry_decides_what_follows_not_the_backoff_before_it(ready: Bench) -> None:
    job = Followed(ready, {"kind": "every", "everyMs": 60_000}, retry={"preset": "goclaw", "backoffSeconds": [300]})
    job.go_to(60_000)
    job.fail(Reason.TIMED_OUT)
    job.go_to((job.next_ms or 0) - job.zero_ms)
    (first, *_) = job.now.next_slots
    assert first.at_ms == job.zero_ms + 120_000
    assert job.why(job.zero_ms + 120_000).cause is Cause.COMING
