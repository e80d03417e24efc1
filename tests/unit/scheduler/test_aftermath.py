"""What a terminal run does to its job: counters, and the end of one-shots."""

import pytest

from cronward.protocol.job import At, Command, Definition, Every, Schedule
from cronward.protocol.outcome import Reason, Status
from cronward.scheduler.aftermath import Aftermath, Finished, decide
from cronward.scheduler.rows import JobRow

ONCE = At("2030-01-01T00:00:00.000Z")
OFTEN = Every(60_000, 0)


def job(next_due_ms: int | None = None, errors: int = 2, skipped: int = 3) -> JobRow:
    return JobRow(
        position=1,
        job_id="j",
        name="n",
        enabled=True,
        definition="",
        revision="",
        created_ms=0,
        updated_ms=0,
        next_due_ms=next_due_ms,
        flag=None,
        last_run_ms=None,
        last_duration_ms=None,
        last_status=None,
        last_reason=None,
        last_error=None,
        consecutive_errors=errors,
        consecutive_skipped=skipped,
        consumed_slots=0,
        schedule_errors=0,
    )


def definition(schedule: Schedule, enabled: bool = True, delete: bool | None = None) -> Definition:
    return Definition("n", schedule, Command(["x"]), enabled=enabled, delete_after_run=delete)


def ended(status: Status, reason: Reason | None = None) -> Finished:
    return Finished("scheduled", status, reason, "", 0, 0)


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
def test_counters(status: Status, reason: Reason | None, errors: int, skipped: int) -> None:
    for schedule in (OFTEN, ONCE):
        after = decide(job(next_due_ms=1), definition(schedule), ended(status, reason))
        assert after == Aftermath(errors, skipped)


@pytest.mark.parametrize(
    ("status", "reason", "delete_after_run", "delete", "disable"),
    [
        (Status.OK, None, None, True, False),
        (Status.OK, None, True, True, False),
        (Status.OK, None, False, False, True),
        (Status.ERROR, Reason.EXIT_CODE, None, False, True),
        (Status.ERROR, Reason.INTERRUPTED, True, False, True),
        (Status.ERROR, Reason.LAUNCH_LOST, None, False, True),
        (Status.SKIPPED, Reason.NOT_DUE, None, False, True),
    ],
)
def test_a_used_up_one_shot_goes_or_stays_disabled(
    status: Status, reason: Reason | None, delete_after_run: bool | None, delete: bool, disable: bool
) -> None:
    after = decide(job(), definition(ONCE, delete=delete_after_run), ended(status, reason))
    assert (after.delete, after.disable) == (delete, disable)


@pytest.mark.parametrize("status", Status)
def test_a_one_shot_whose_slot_is_still_to_come_is_kept(status: Status) -> None:
    after = decide(job(next_due_ms=5), definition(ONCE), ended(status, Reason.EXIT_CODE))
    assert not after.delete
    assert not after.disable


@pytest.mark.parametrize("status", Status)
def test_what_was_disabled_or_cannot_be_read_only_gets_its_counters(status: Status) -> None:
    for readable in (definition(ONCE, enabled=False), None):
        after = decide(job(), readable, ended(status, Reason.EXIT_CODE))
        assert not after.delete
        assert not after.disable


@pytest.mark.parametrize("status", Status)
def test_recurring_jobs_never_end(status: Status) -> None:
    after = decide(job(), definition(OFTEN), ended(status, Reason.EXIT_CODE))
    assert not after.delete
    assert not after.disable
