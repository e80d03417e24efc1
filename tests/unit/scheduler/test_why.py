"""Why a slot did or did not become a run: one test for each cause, over facts alone."""

import re
from pathlib import Path

import msgspec
import pytest

from cronward.protocol.job import At, Cron, Every, Schedule
from cronward.protocol.why import Cause
from cronward.schedule.at import iso_utc, parse_at
from cronward.schedule.deadline import IN_WORDS, Deadline, Kind
from cronward.scheduler.changes import Detail, Scheduling
from cronward.scheduler.facts import Change, Decided, Facts, Life, Outage, Spell, downtimes, pauses, spells
from cronward.scheduler.rows import RunRow
from cronward.scheduler.slot_decisions import Decision
from cronward.scheduler.why import Explanation, explain, slot_meant

HOUR_MS = 3_600_000
BEGIN_MS = parse_at("2026-06-01T00:00Z")
NOW_MS = parse_at("2026-06-10T12:30Z")
SLOT_MS = parse_at("2026-06-10T10:00Z")
HOURLY = Every(HOUR_MS, BEGIN_MS)
NEW_YORK = "America/New_York"


def change(at_ms: int, action: str, by: str = "uid 1000", detail: Detail | None = None) -> Change:
    return Change(at_ms, action, by, detail or Detail())


def spell(schedule: Schedule, from_ms: int = BEGIN_MS, enabled: bool = True, by: str = "uid 1000") -> Spell:
    return Spell(from_ms, Scheduling(schedule, enabled), change(from_ms, "added", by))


def facts(schedule: Schedule = HOURLY, **more: object) -> Facts:
    known = Facts("j", [spell(schedule)], deadline=Deadline(parse_at("2026-06-10T13:00Z")))
    return msgspec.structs.replace(known, **more)


def run(state: str, slot_ms: int = SLOT_MS, **more: object) -> RunRow:
    made = RunRow(
        arrival=1,
        run_id="r",
        run_key="k",
        job_id="j",
        job_position=1,
        job_name="n",
        kind="scheduled",
        mode=None,
        requester=None,
        slot_ms=slot_ms,
        requested_ms=slot_ms,
        state=state,
        reason=None,
        message=None,
        activated_ms=None if state in ("queued", "skipped") else slot_ms + 5,
        instance=None,
        epoch=None,
        boot_id=None,
        started_ms=None,
        ended_ms=None,
        outcome=None,
        late_outcome=None,
        cancel_by=None,
        cancel_why=None,
        cancel_ms=None,
    )
    return msgspec.structs.replace(made, **more)


def why(known: Facts, at_ms: int = SLOT_MS) -> Explanation:
    return explain(known, at_ms, NOW_MS)


# slots with a run


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        (run("ok", started_ms=SLOT_MS + 9), Cause.RAN),
        (run("error", reason="exit_code", started_ms=SLOT_MS + 9), Cause.RAN),
        (run("error", reason="interrupted"), Cause.RAN),
        (run("active"), Cause.RUNNING),
        (run("queued"), Cause.WAITING),
        (run("skipped", reason="disabled", message="the job was disabled"), Cause.SKIPPED),
        (run("error", reason="launch_lost", message="lost"), Cause.LAUNCH_LOST),
    ],
    ids=["ok", "failed", "interrupted", "active", "queued", "skipped", "lost"],
)
def test_a_run_says_what_became_of_its_slot(row: RunRow, cause: Cause) -> None:
    said = why(facts(runs=[row]))
    assert (said.cause, said.slot_ms, said.run_id) == (cause, SLOT_MS, "r")


def test_lateness_is_from_the_slot_to_the_start() -> None:
    assert why(facts(runs=[run("ok", started_ms=SLOT_MS + 250)])).late_ms == 250
    assert why(facts(runs=[run("active")])).late_ms == 5
    assert why(facts(runs=[run("queued")])).late_ms is None


def test_what_held_a_run_up() -> None:
    late = run("ok", requested_ms=SLOT_MS + HOUR_MS, activated_ms=SLOT_MS + HOUR_MS)
    outage = Outage(SLOT_MS - 1, SLOT_MS + HOUR_MS)
    said = why(facts(runs=[late], down=[outage]))
    assert (said.delayed_by, said.since_ms, said.until_ms) == (Cause.DOWN, outage.since_ms, outage.until_ms)
    paused = why(facts(runs=[late], paused=[Outage(SLOT_MS, SLOT_MS + 1, "ann")]))
    assert (paused.delayed_by, paused.by) == (Cause.PAUSED, "ann")
    waited = run("ok", activated_ms=SLOT_MS + 1_001)
    assert why(facts(runs=[waited])).delayed_by is Cause.WAITING
    assert why(facts(runs=[run("ok")])).delayed_by is None
    deferred = Decided(Decision.DEFERRED, SLOT_MS, SLOT_MS + 5_000, None, SLOT_MS)
    assert why(facts(runs=[run("ok")], decisions=[deferred])).delayed_by is Cause.DEFERRED


def test_a_run_that_was_asked_for_in_time_was_held_up_by_nothing() -> None:
    """After a crash the scheduler is known to have been there until two minutes before it."""
    crash = Outage(SLOT_MS - 60_000, SLOT_MS + 30_000, is_estimate=True)
    said = why(facts(runs=[run("ok")], down=[crash]))
    assert (said.delayed_by, said.since_ms, said.until_ms) == (None, None, None)
    by_hand_in_a_pause = facts(runs=[run("ok")], paused=[Outage(SLOT_MS - 1, None, "ann")])
    assert why(by_hand_in_a_pause).delayed_by is None


# slots without one


def test_what_is_known_goes_before_what_is_estimated() -> None:
    around_it = (SLOT_MS - 1_000, SLOT_MS + 1_000)
    known, estimated, paused = Outage(*around_it), Outage(*around_it, is_estimate=True), Outage(*around_it, "ann")
    assert why(facts(down=[estimated])).cause is Cause.DOWN
    assert why(facts(down=[estimated], paused=[paused])).cause is Cause.PAUSED
    assert why(facts(down=[known], paused=[paused])).cause is Cause.DOWN


def decided(decision: Decision, until_ms: int, run_id: str | None = None, slot_ms: int = SLOT_MS) -> list[Decided]:
    return [Decided(decision, slot_ms, until_ms, run_id, SLOT_MS)]


def test_consumed_by_an_earlier_run() -> None:
    said = why(facts(decisions=decided(Decision.CONSUMED, SLOT_MS, "earlier")))
    assert (said.cause, said.run_id) == (Cause.CONSUMED, "earlier")


def test_left_out_by_backoff() -> None:
    said = why(facts(decisions=decided(Decision.BACKOFF, SLOT_MS + 5 * 60_000, "failed")))
    assert (said.cause, said.run_id, said.until_ms) == (Cause.BACKOFF, "failed", SLOT_MS + 300_000)


def test_deferred_until_its_turn() -> None:
    deadline = Deadline(NOW_MS + 5_000, Kind.CATCH_UP, SLOT_MS)
    said = why(facts(decisions=decided(Decision.DEFERRED, NOW_MS + 5_000), deadline=deadline))
    assert (said.cause, said.until_ms) == (Cause.DEFERRED, NOW_MS + 5_000)
    assert why(facts(decisions=decided(Decision.DEFERRED, NOW_MS + 5_000, slot_ms=SLOT_MS - 1))).cause is Cause.UNKNOWN
    edited = facts(decisions=decided(Decision.DEFERRED, NOW_MS + 5_000))
    assert why(edited).cause is not Cause.DEFERRED


def test_dropped_while_nobody_looked() -> None:
    said = why(facts(decisions=decided(Decision.DROPPED, SLOT_MS)))
    assert (said.cause, said.run_id) == (Cause.DROPPED, None)
    latest = run("ok", SLOT_MS + HOUR_MS)
    caught_up = why(facts(decisions=decided(Decision.DROPPED, SLOT_MS + HOUR_MS - 1), runs=[latest]))
    assert (caught_up.cause, caught_up.run_id) == (Cause.DROPPED, "r")


def test_missed_while_the_scheduler_was_down() -> None:
    outage = Outage(SLOT_MS - 60_000, SLOT_MS + 60_000)
    said = why(facts(down=[outage], decisions=decided(Decision.DROPPED, SLOT_MS)))
    assert (said.cause, said.since_ms, said.until_ms) == (Cause.DOWN, outage.since_ms, outage.until_ms)
    assert why(facts(down=[outage])).cause is Cause.DOWN


def test_missed_while_paused() -> None:
    said = why(facts(paused=[Outage(SLOT_MS, SLOT_MS + 60_000, "ann")]))
    assert (said.cause, said.by, said.until_ms) == (Cause.PAUSED, "ann", SLOT_MS + 60_000)


def test_waits_while_it_is_still_paused() -> None:
    known = facts(
        paused=[Outage(SLOT_MS - 1, None, "ann")], deadline=Deadline(SLOT_MS), holds_up="the service is paused"
    )
    assert why(known) == Explanation(Cause.WAITING, SLOT_MS, since_ms=SLOT_MS - 1, detail="the service is paused")
    assert why(known, SLOT_MS + HOUR_MS).cause is Cause.WAITING


def test_covered_by_the_run_of_the_slot_before() -> None:
    before = run("ok", SLOT_MS - HOUR_MS, requested_ms=SLOT_MS + 1)
    assert why(facts(runs=[before])) == Explanation(Cause.COVERED, SLOT_MS, "r")


def test_flagged() -> None:
    assert why(facts(flag="damaged")) == Explanation(Cause.FLAGGED, SLOT_MS, detail="damaged")
    broken = Cron("99 * * * *", "UTC", 0)
    assert why(facts(broken)).cause is Cause.FLAGGED


def test_forgotten_and_unknown() -> None:
    assert why(facts(kept_since_ms=SLOT_MS + 1)).cause is Cause.FORGOTTEN
    assert why(facts()).cause is Cause.UNKNOWN


# jobs that were off, other or not there


def off(by: str, schedule: Schedule = HOURLY) -> Facts:
    on = spell(schedule)
    edited = Spell(SLOT_MS - 50, Scheduling(Every(HOUR_MS // 2, BEGIN_MS), False), change(SLOT_MS - 50, "updated"))
    disabled = Spell(SLOT_MS - 100, Scheduling(schedule, False), change(SLOT_MS - 100, "updated", by))
    return facts(spells=[on, disabled, edited] if isinstance(schedule, Every) else [on, disabled])


def test_disabled_by_whom_and_when() -> None:
    said = why(off("ann"))
    assert (said.cause, said.since_ms, said.by) == (Cause.DISABLED, SLOT_MS - 100, "ann")


def test_disabled_by_cronward() -> None:
    assert why(off("cronward")).cause is Cause.AUTO_DISABLED


def test_a_one_shot_that_is_used_up() -> None:
    once = At(iso_utc(SLOT_MS))
    assert why(off("cronward", once)).cause is Cause.USED_UP


def test_a_slot_of_the_schedule_before_an_edit() -> None:
    known = facts(spells=[spell(HOURLY), spell(Every(HOUR_MS, BEGIN_MS + 1), SLOT_MS - 10, by="ann")])
    said = why(known)
    assert (said.cause, said.since_ms, said.by, said.slot_ms) == (Cause.EDITED, SLOT_MS - 10, "ann", None)


def test_a_slot_of_the_schedule_after_an_edit() -> None:
    known = facts(spells=[spell(Every(HOUR_MS, BEGIN_MS + 1)), spell(HOURLY, SLOT_MS + 10, by="ann")])
    said = why(known)
    assert (said.cause, said.since_ms, said.by) == (Cause.EDITED, SLOT_MS + 10, "ann")


def test_before_the_job_and_after_it() -> None:
    said = why(facts(spells=[spell(HOURLY, SLOT_MS + 1, by="ann")]))
    assert (said.cause, said.until_ms, said.by) == (Cause.NOT_YET_CREATED, SLOT_MS + 1, "ann")
    gone = Spell(SLOT_MS - 1, None, change(SLOT_MS - 1, "removed", "bob"))
    said = why(facts(spells=[spell(HOURLY), gone]))
    assert (said.cause, said.since_ms, said.by) == (Cause.REMOVED, SLOT_MS - 1, "bob")


# instants that are no slot


def test_not_a_slot() -> None:
    assert why(facts(), SLOT_MS + 1).cause is Cause.NOT_A_SLOT


@pytest.mark.parametrize(
    ("expr", "at", "cause", "words"),
    [
        ("30 1 * * *", "2025-11-02T06:30Z", Cause.SWALLOWED, "comes twice"),
        ("30 * * * *", "2026-03-08T07:00Z", Cause.SWALLOWED, "does not exist"),
        ("0 9 * * *", "2026-03-08T07:00Z", Cause.NOT_A_SLOT, None),
    ],
)
def test_swallowed_by_a_zone_change(expr: str, at: str, cause: Cause, words: str | None) -> None:
    known = facts(spells=[spell(Cron(expr, NEW_YORK, 0), parse_at("2025-01-01T00:00Z"))])
    said = why(known, parse_at(at))
    assert said.cause is cause
    assert (said.note is None) if words is None else (words in (said.note or ""))


def test_a_slot_that_is_moved_is_a_slot() -> None:
    known = facts(spells=[spell(Cron("30 2 * * *", NEW_YORK, 0), parse_at("2025-01-01T00:00Z"))])
    at_ms = parse_at("2026-03-08T07:00Z")
    assert why(msgspec.structs.replace(known, runs=[run("ok", at_ms)]), at_ms).cause is Cause.RAN


# slots to come


def test_to_come() -> None:
    assert why(facts(), parse_at("2026-06-10T13:00Z")).cause is Cause.COMING
    assert why(facts(), parse_at("2026-06-10T15:00Z")).cause is Cause.COMING
    assert why(facts(flag="damaged"), parse_at("2026-06-10T13:00Z")).cause is Cause.FLAGGED


@pytest.mark.parametrize(
    ("kind", "cause"), [(Kind.BACKOFF, Cause.BACKOFF), (Kind.SLOT, Cause.FAR_AHEAD), (Kind.CATCH_UP, Cause.COMING)]
)
def test_to_come_before_the_deadline(kind: Kind, cause: Cause) -> None:
    missed_ms = parse_at("2026-06-10T10:00Z") if kind is Kind.CATCH_UP else None
    deadline = Deadline(parse_at("2026-06-11T00:00Z"), kind, missed_ms)
    assert why(facts(deadline=deadline), parse_at("2026-06-10T13:00Z")).cause is cause


@pytest.mark.parametrize("kind", [Kind.BACKOFF, Kind.RETRY, Kind.CATCH_UP])
def test_to_come_before_a_deadline_that_a_clock_that_was_ahead_has_left(kind: Kind) -> None:
    due_ms = parse_at("2027-01-01T00:00Z")
    known = facts(deadline=Deadline(due_ms, kind, due_ms - 1), far_ahead=True)
    assert why(known, parse_at("2026-06-10T13:00Z")).cause is Cause.FAR_AHEAD


@pytest.mark.parametrize("kind", [Kind.RETRY, Kind.BACKOFF, Kind.CATCH_UP, Kind.PACED])
def test_a_deadline_beside_the_schedule_is_to_come_or_waits(kind: Kind) -> None:
    for due_ms, cause in ((NOW_MS + 5, Cause.COMING), (NOW_MS - 5, Cause.WAITING)):
        said = why(facts(deadline=Deadline(due_ms, kind, SLOT_MS)), due_ms)
        assert (said.cause, said.slot_ms, said.detail) == (cause, due_ms, IN_WORDS[kind])
    held_up = facts(deadline=Deadline(NOW_MS - 5, kind), holds_up="the service is paused")
    assert why(held_up, NOW_MS - 5).detail == "the service is paused"


def test_a_slot_that_waits_for_the_gap_after_a_run_puts_no_blame_on_the_clock() -> None:
    secondly = Every(1_000, BEGIN_MS)
    known = facts(secondly, deadline=Deadline(NOW_MS + 2_000, Kind.SLOT, NOW_MS + 1_000))
    for at_ms in (NOW_MS + 1_000, NOW_MS + 2_000, NOW_MS + 3_000):
        assert why(known, at_ms).cause is Cause.COMING
    ahead = facts(secondly, deadline=Deadline(NOW_MS + 3_000))
    assert why(ahead, NOW_MS + 2_000).cause is Cause.FAR_AHEAD


# which instant is meant


def test_without_a_time_the_last_slot_is_meant_else_the_next() -> None:
    assert slot_meant(facts(), None, NOW_MS) == parse_at("2026-06-10T12:00Z")
    young = facts(spells=[spell(HOURLY, NOW_MS - 1)])
    assert slot_meant(young, None, NOW_MS) == parse_at("2026-06-10T13:00Z")


def test_stagger_moves_the_time_that_the_expression_names() -> None:
    known = facts(Cron("0 * * * *", "UTC", 300_000))
    meant = slot_meant(known, SLOT_MS, NOW_MS)
    assert 0 < meant - SLOT_MS < 300_000
    assert slot_meant(known, meant, NOW_MS) == meant
    assert slot_meant(known, SLOT_MS + 1_000, NOW_MS) == SLOT_MS + 1_000


def test_a_time_that_is_meant_roughly_stands_for_what_comes_first_in_there() -> None:
    retried_ms, due_ms = SLOT_MS + 30_200, SLOT_MS + 75_000
    known = facts(deadline=Deadline(due_ms, Kind.RETRY))
    assert slot_meant(known, SLOT_MS, NOW_MS, within_ms=60_000, run_ms=retried_ms) == SLOT_MS
    assert slot_meant(known, SLOT_MS + 30_000, NOW_MS, within_ms=1_000, run_ms=retried_ms) == retried_ms
    assert slot_meant(known, SLOT_MS + 31_000, NOW_MS, within_ms=1_000, run_ms=retried_ms) == SLOT_MS + 31_000
    assert slot_meant(known, SLOT_MS + 60_000, NOW_MS, within_ms=60_000, run_ms=retried_ms) == due_ms
    assert slot_meant(known, SLOT_MS + 30_000, NOW_MS, run_ms=retried_ms) == SLOT_MS + 30_000


# how facts are read


def test_spells_follow_the_changes() -> None:
    first, second = Scheduling(HOURLY), Scheduling(HOURLY, enabled=False)
    changes = [
        change(10, "added", detail=Detail(after=first)),
        change(20, "updated", detail=Detail(fields=["payload"])),
        change(30, "updated", detail=Detail(before=first, after=second)),
        change(40, "removed", detail=Detail(before=second)),
    ]
    assert [(found.from_ms, found.scheduling) for found in spells(changes, None, None)] == [
        (10, first),
        (30, second),
        (40, None),
    ]
    pruned = spells(changes[2:], None, 5)
    assert (pruned[0].from_ms, pruned[0].scheduling, pruned[0].began) == (5, first, None)


def test_downtimes_lie_between_lives() -> None:
    lives = [Life(0, 10, None), Life(50, 60, 70), Life(90, 95, None)]
    assert downtimes(lives) == [Outage(10, 50, is_estimate=True), Outage(70, 90)]
    assert downtimes([Life(0, 100, 100), Life(40, 50, None)]) == []  # the clock was set back


def test_pauses_end_with_the_resume_and_drains_also_with_a_start() -> None:
    lives = [Life(0, 100, None), Life(200, 300, None)]
    rows = [
        change(10, "paused", "ann"),
        change(20, "paused", "bob"),
        change(30, "resumed"),
        change(40, "drained", "ann"),
    ]
    assert pauses(rows, lives) == [Outage(10, 30, "ann"), Outage(40, 200, "ann")]
    assert pauses([change(10, "paused", "ann")], lives) == [Outage(10, None, "ann")]
    assert pauses([change(250, "drained", "ann")], lives) == [Outage(250, None, "ann")]


def test_every_cause_is_given_by_some_test() -> None:
    """The list of causes is the contract; one that no test reaches would be a promise only."""
    source = Path(__file__).read_text()
    assert [cause for cause in Cause if f"Cause.{cause.name}" not in source] == []


def test_the_page_lists_the_causes_in_their_order() -> None:
    page = (Path(__file__).parents[3] / "docs" / "why.md").read_text()
    assert re.findall(r"^\| `([a-z_]+)` \| ", page, re.MULTILINE) == [str(cause) for cause in Cause]
