"""What the end of a run means for its job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.config import RetryConfig
from cronward.protocol.job import At, Command, Cron, Definition, Every, Pacing, Retry, Schedule
from cronward.protocol.outcome import Reason, Status
from cronward.schedule import backoff
from cronward.schedule.after_run import After, Ended, Fate, Job, decide
from cronward.schedule.at import parse_at
from cronward.schedule.deadline import Deadline, Kind

ONCE = At("2030-01-01T00:00:00.000Z")
FIVE_MINUTELY = Cron("*/5 * * * *", "UTC", 0)
TEN_SECONDLY = Cron("*/10 * * * * *", "UTC", 0)
TEN_MINUTES = Every(600_000, 0)
RULES = backoff.rules(RetryConfig(), None)
SLOT = Deadline(600_000)


def definition(schedule: Schedule, **more: object) -> Definition:
    return Definition("n", schedule, Command(["x"]), **more)  # type: ignore[arg-type]  # as the test says


def after(
    schedule: Schedule,
    ended: Ended,
    deadline: Deadline | None = SLOT,
    *,
    errors: int = 0,
    skipped: int = 0,
    changed: bool = False,
    **more: object,
) -> After:
    return decide(Job(definition(schedule, **more), deadline, errors, skipped, None, changed), ended, RULES)


def ok(ended_ms: int = 0, **more: object) -> Ended:
    return Ended(Status.OK, None, "", ended_ms, ended_ms, "run", **more)  # type: ignore[arg-type]  # as the test says


def failed(ended_ms: int = 0, reason: Reason = Reason.EXIT_CODE, message: str = "", **more: object) -> Ended:
    return Ended(Status.ERROR, reason, message, ended_ms, ended_ms, "run", **more)  # type: ignore[arg-type]  # as the test says


def timed_out(ended_ms: int = 0, *, forced: bool = False) -> Ended:
    return failed(ended_ms, Reason.TIMED_OUT, forced=forced)


# counters


@pytest.mark.parametrize(
    ("status", "reason", "errors", "skipped"),
    [
        (Status.OK, None, 0, 0),
        (Status.ERROR, Reason.EXIT_CODE, 3, 0),
        (Status.ERROR, Reason.TIMED_OUT, 3, 0),
        (Status.SKIPPED, Reason.SPAWN_FAILED, 0, 4),
        (Status.ERROR, Reason.INTERRUPTED, 2, 3),
        (Status.ERROR, Reason.LAUNCH_LOST, 2, 3),
        (Status.ERROR, Reason.CANCELLED, 2, 3),
        (Status.SKIPPED, Reason.CANCELLED, 2, 3),
        (Status.ERROR, Reason.TERMINATED, 2, 3),
        (Status.ERROR, Reason.ABANDONED, 2, 3),
    ],
)
@pytest.mark.parametrize("schedule", [ONCE, TEN_MINUTES, FIVE_MINUTELY])
@pytest.mark.parametrize("changed", [False, True])
def test_counters(
    schedule: Schedule, changed: bool, status: Status, reason: Reason | None, errors: int, skipped: int
) -> None:
    found = after(schedule, Ended(status, reason, "", 0, 0, "run"), errors=2, skipped=3, changed=changed)
    assert (found.consecutive_errors, found.consecutive_skipped) == (errors, skipped)


@pytest.mark.parametrize("ended", [ok(), failed(), timed_out(), Ended(Status.SKIPPED, Reason.NOT_DUE, "", 0, 0, "run")])
@pytest.mark.parametrize("deadline", [None, SLOT])
def test_what_was_edited_disabled_or_cannot_be_read_keeps_its_deadline(ended: Ended, deadline: Deadline | None) -> None:
    for job in (
        Job(definition(TEN_MINUTES), deadline, 9, 0, None, changed=True),
        Job(definition(ONCE), deadline, 9, 0, None, changed=True),
        Job(definition(TEN_MINUTES, enabled=False), deadline, 9, 0),
        Job(None, deadline, 9, 0),
    ):
        found = decide(job, ended, RULES)
        assert (found.deadline, found.fate) == (deadline, Fate.GOES_ON)


# one-shots


@pytest.mark.parametrize(
    ("ended", "delete", "fate"),
    [
        (ok(), None, Fate.DELETED),
        (ok(), True, Fate.DELETED),
        (ok(), False, Fate.USED_UP),
        (failed(), None, Fate.USED_UP),
        (failed(reason=Reason.INTERRUPTED), True, Fate.USED_UP),
        (failed(reason=Reason.LAUNCH_LOST), None, Fate.USED_UP),
        (failed(reason=Reason.CANCELLED, message="network"), None, Fate.USED_UP),
        (Ended(Status.SKIPPED, Reason.NOT_DUE, "", 0, 0, "run"), None, Fate.USED_UP),
    ],
)
@pytest.mark.parametrize("forced", [False, True])
def test_a_one_shot_ends(ended: Ended, delete: bool | None, fate: Fate, forced: bool) -> None:
    ended = Ended(ended.status, ended.reason, ended.message, 0, 0, "run", forced)
    found = after(ONCE, ended, None, delete_after_run=delete)
    assert (found.fate, found.deadline) == (fate, None)


def test_a_one_shot_is_tried_three_times_more_if_the_error_may_pass() -> None:
    delays = [after(ONCE, timed_out(1_000), None, errors=errors).deadline for errors in range(4)]
    assert delays == [Deadline(1_000 + ms, Kind.RETRY) for ms in (30_000, 60_000, 300_000)] + [None]
    assert after(ONCE, timed_out(), None, errors=3).fate is Fate.USED_UP


@pytest.mark.parametrize("ended", [ok(forced=True), timed_out(forced=True), ok()])
def test_a_one_shot_whose_slot_is_still_to_come_is_kept(ended: Ended) -> None:
    found = after(ONCE, ended, SLOT)
    assert (found.fate, found.deadline) == (Fate.GOES_ON, SLOT)


@pytest.mark.parametrize("planned", [None, Deadline(5, Kind.RETRY), Deadline(5, Kind.CATCH_UP, 1)])
def test_a_one_shot_that_is_forced_after_its_slot_has_been_served(planned: Deadline | None) -> None:
    """Contract 4.5: what was planned for that slot, a retry or a late run, does not come any more."""
    at_ms = parse_at(ONCE.at)
    found = after(ONCE, ok(forced=True, asked_ms=at_ms), planned)
    assert (found.fate, found.deadline) == (Fate.DELETED, None)
    failing = after(ONCE, failed(forced=True, asked_ms=at_ms), planned)
    assert (failing.fate, failing.deadline) == (Fate.USED_UP, None)
    assert after(ONCE, ok(forced=True, asked_ms=at_ms - 1), SLOT).deadline == SLOT
    if planned is not None:  # a run that never started has served nothing
        skipped = Ended(Status.SKIPPED, Reason.CANCELLED, "", 0, 0, "run", forced=True, asked_ms=at_ms)
        for ended in (skipped, failed(reason=Reason.LAUNCH_LOST, forced=True, asked_ms=at_ms)):
            assert (after(ONCE, ended, planned).fate, after(ONCE, ended, planned).deadline) == (Fate.GOES_ON, planned)


def test_a_retry_whose_time_is_past_when_the_end_becomes_known_is_due_then() -> None:
    late = Ended(Status.ERROR, Reason.TIMED_OUT, "", 1_000, 500_000, "run")
    assert after(TEN_MINUTES, late).deadline == Deadline(500_000, Kind.RETRY)
    assert after(TEN_MINUTES, late, Deadline(400_000)).deadline == Deadline(400_000)


# recurring jobs (pitfalls 6, 13, 19, 20)


def test_pitfall_6_every_stays_on_its_grid() -> None:
    # ten minutes, a run of three: the slot after it is the grid's, also right after the run, failed or forced
    assert after(TEN_MINUTES, ok(180_000)).deadline == SLOT
    assert after(TEN_MINUTES, ok(599_999)).deadline == SLOT
    assert after(TEN_MINUTES, timed_out(180_000)).deadline == Deadline(210_000, Kind.RETRY)
    assert after(TEN_MINUTES, timed_out(580_000)).deadline == Deadline(610_000, Kind.BACKOFF)
    assert after(TEN_MINUTES, failed(180_000)).deadline == SLOT
    assert after(TEN_MINUTES, ok(180_000, forced=True)).deadline == SLOT
    assert after(TEN_MINUTES, failed(180_000, forced=True)).deadline == SLOT


def test_a_cron_slot_right_after_a_run_is_served_in_time() -> None:
    """A slot has an id of its own, so it needs no distance from the run before it to be served once."""
    assert after(TEN_SECONDLY, ok(9_999), Deadline(10_000)).deadline == Deadline(10_000)


def test_a_gap_that_is_asked_for_makes_the_slot_wait_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "RULES", backoff.rules(RetryConfig(refire_gap_s=2), None))
    assert after(TEN_SECONDLY, ok(9_500), Deadline(10_000)).deadline == Deadline(11_500, Kind.SLOT, 10_000)
    assert after(TEN_SECONDLY, ok(8_000), Deadline(10_000)).deadline == Deadline(10_000)
    assert after(TEN_SECONDLY, ok(9_500, forced=True), Deadline(10_000)).deadline == Deadline(10_000)
    again = after(TEN_SECONDLY, ok(11_000), Deadline(11_500, Kind.SLOT, 10_000)).deadline
    assert again == Deadline(13_000, Kind.SLOT, 10_000)


def test_pitfall_19_transient_errors() -> None:
    assert after(FIVE_MINUTELY, timed_out(1_000), Deadline(300_000)).deadline == Deadline(31_000, Kind.RETRY)
    assert after(TEN_SECONDLY, timed_out(1_000), Deadline(10_000)).deadline == Deadline(31_000, Kind.BACKOFF)
    fourth = after(FIVE_MINUTELY, timed_out(1_000), Deadline(300_000), errors=3)
    assert fourth.deadline == Deadline(901_000, Kind.BACKOFF)
    text = failed(1_000, Reason.EXIT_CODE, "exit code 1: timeout")
    assert after(FIVE_MINUTELY, text, Deadline(300_000)).deadline == Deadline(300_000)
    assert after(TEN_SECONDLY, text, Deadline(10_000)).deadline == Deadline(31_000, Kind.BACKOFF)


def test_pitfall_20_the_tenth_failure_in_a_row() -> None:
    for schedule in (FIVE_MINUTELY, TEN_MINUTES):
        assert after(schedule, failed(), errors=8).fate is Fate.GOES_ON
        tenth = after(schedule, failed(), errors=9)
        assert (tenth.fate, tenth.deadline, tenth.consecutive_errors) == (Fate.AUTO_DISABLED, None, 10)
        # a skip in between sets the counter back; what was asked for by hand never switches off
        skipped = after(schedule, Ended(Status.SKIPPED, Reason.GATEWAY_UNAVAILABLE, "", 0, 0, "run"), errors=9)
        assert (skipped.consecutive_errors, skipped.fate) == (0, Fate.GOES_ON)
        assert after(schedule, failed(forced=True), errors=9).fate is Fate.GOES_ON
        assert after(schedule, failed(reason=Reason.INTERRUPTED), errors=9).fate is Fate.GOES_ON
    assert after(ONCE, failed(), None, errors=9).fate is Fate.USED_UP


def test_pitfall_13_a_failed_forced_run_opens_backoff_and_schedules_nothing() -> None:
    found = after(FIVE_MINUTELY, timed_out(299_000, forced=True), Deadline(300_000))
    assert found == After(1, 0, Deadline(300_000), 329_000)


def test_pitfall_13_a_forced_run_keeps_a_paced_slot() -> None:
    paced = Deadline(432_100, Kind.PACED)
    for ended in (ok(forced=True, proposed_ms=5), failed(forced=True)):
        assert after(TEN_MINUTES, ended, paced, pacing=Pacing(1, 10)).deadline == paced


def test_a_proposal_is_honoured_only_after_a_run_that_went_well() -> None:
    pacing = Pacing(60_000, 120_000)
    assert after(TEN_MINUTES, ok(1_000, proposed_ms=5), pacing=pacing).deadline == Deadline(61_000, Kind.PACED)
    assert after(TEN_MINUTES, ok(1_000, proposed_ms=5)).deadline == SLOT
    assert after(TEN_MINUTES, failed(1_000, proposed_ms=5), pacing=pacing).deadline == SLOT


def test_success_closes_the_backoff_window_and_interruption_leaves_it() -> None:
    job = Job(definition(FIVE_MINUTELY), SLOT, 2, 0, backoff_until_ms=99)
    assert decide(job, ok(), RULES).backoff_until_ms is None
    assert decide(job, failed(reason=Reason.INTERRUPTED), RULES).backoff_until_ms == 99


@given(
    st.sampled_from([FIVE_MINUTELY, TEN_SECONDLY, TEN_MINUTES]),
    st.integers(0, 10**7),
    st.integers(1, 10**7),
    st.sampled_from([Reason.EXIT_CODE, Reason.TIMED_OUT, Reason.SIGNAL]),
    st.integers(0, 12),
    st.sampled_from([None, Retry(preset="goclaw"), Retry(disable_after=0, backoff_seconds=(1,))]),
)
def test_a_failed_run_is_followed_by_one_deadline_after_its_end(
    schedule: Schedule, ended_ms: int, slot_in_ms: int, reason: Reason, errors: int, own: Retry | None
) -> None:
    rules = backoff.rules(RetryConfig(), own)
    slot = Deadline(ended_ms + slot_in_ms)
    found = decide(Job(definition(schedule), slot, errors, 0), failed(ended_ms, reason), rules)
    if found.fate is Fate.AUTO_DISABLED:
        assert found.deadline is None
    else:
        assert found.deadline is not None
        assert found.deadline.due_ms > ended_ms
        assert found.backoff_until_ms is not None
        assert found.deadline.kind is Kind.RETRY or found.deadline.due_ms >= found.backoff_until_ms


def test_the_gap_after_a_run_puts_off_slots_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missed slot that is run late keeps its place, before the job's next slot."""
    monkeypatch.setitem(globals(), "RULES", backoff.rules(RetryConfig(refire_gap_s=30), None))
    late = Deadline(5_000, Kind.CATCH_UP, 1)
    assert after(FIVE_MINUTELY, ok(0), late).deadline == late
    assert after(FIVE_MINUTELY, ok(0), Deadline(5_000)).deadline == Deadline(30_000, Kind.SLOT, 5_000)
