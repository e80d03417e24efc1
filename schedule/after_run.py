"""What the end of a run means for its job: counters, the next deadline, and whether the job goes on at all.

When a run ends, the job's next slot is already there: it was planned when the run was requested, and slots that came
meanwhile were consumed. So a run that went well changes nothing but counters, and a failed one can only move the
deadline away from that slot: earlier for a quick retry, later for backoff.
"""

import enum
from typing import NamedTuple

import msgspec

from cronward.protocol.job import At, Cron, Definition, deletes_itself
from cronward.protocol.outcome import Reason, Status
from cronward.schedule import auto_disable, backoff, pacing, retry
from cronward.schedule.at import parse_at
from cronward.schedule.backoff import RetryRules
from cronward.schedule.deadline import Deadline, Kind


class Fate(enum.StrEnum):
    """What becomes of the job."""

    GOES_ON = "goes_on"
    DELETED = "deleted"
    """A one-shot that went well."""
    USED_UP = "used_up"
    """A one-shot that is kept; disabled."""
    AUTO_DISABLED = "auto_disabled"
    """Too many failures in a row."""


class Job(NamedTuple):
    """The job when the result arrives. `definition` is None if it cannot be read (then only the counters change).
    `changed`: its scheduling was edited since the run was launched, so the edit decides and not the run."""

    definition: Definition | None
    deadline: Deadline | None
    consecutive_errors: int
    consecutive_skipped: int
    backoff_until_ms: int | None = None
    changed: bool = False


class Ended(msgspec.Struct, frozen=True):
    """A run that is over. `now_ms` is when that became known, which may be long after the end. `forced`: asked for by
    hand beside the schedule, at `asked_ms`. `seed` (the run id) places jitter; `proposed_ms` is the delay that the run
    proposes for the next check."""

    status: Status
    reason: Reason | None
    message: str
    ended_ms: int
    now_ms: int
    seed: str
    forced: bool = False
    asked_ms: int = 0
    proposed_ms: int | None = None


class After(NamedTuple):
    """The decision. `backoff_until_ms`: the next slot is not served before this."""

    consecutive_errors: int
    consecutive_skipped: int
    deadline: Deadline | None
    backoff_until_ms: int | None
    fate: Fate = Fate.GOES_ON


def decide(job: Job, ended: Ended, rules: RetryRules) -> After:
    """Pure and total."""
    after = _counted(job, ended, rules)
    definition = job.definition
    if job.changed and _is_failure(ended):
        return after._replace(backoff_until_ms=job.backoff_until_ms)  # the new slots wait for nothing
    if definition is None or job.changed or not definition.enabled:
        return after
    if isinstance(definition.schedule, At):
        return _one_shot(after, definition, definition.schedule, ended, rules)
    if ended.forced:
        return after
    if _is_failure(ended):
        return _failed(after, ended, rules)
    if ended.status is Status.OK and ended.proposed_ms is not None and definition.pacing is not None:
        due_ms = pacing.next_check_ms(definition.pacing, ended.ended_ms, ended.proposed_ms)
        return after._replace(deadline=Deadline(due_ms, Kind.PACED))
    if isinstance(definition.schedule, Cron):
        return after._replace(deadline=_with_gap(after.deadline, ended.ended_ms + rules.refire_gap_ms, ended.now_ms))
    return after


def _is_failure(ended: Ended) -> bool:
    return ended.status is Status.ERROR and ended.reason not in retry.NOT_THE_JOBS_FAULT


def _counted(job: Job, ended: Ended, rules: RetryRules) -> After:
    """Counters, and the backoff window that any failure opens."""
    errors, skipped = job.consecutive_errors, job.consecutive_skipped
    if ended.reason in retry.NOT_THE_JOBS_FAULT:
        return After(errors, skipped, job.deadline, job.backoff_until_ms)
    match ended.status:
        case Status.ERROR:
            until_ms = ended.ended_ms + backoff.backoff_ms(rules, errors + 1)
            return After(errors + 1, 0, job.deadline, until_ms)
        case Status.SKIPPED:
            return After(0, skipped + 1, job.deadline, None)
        case Status.OK:
            return After(0, 0, job.deadline, None)


def _one_shot(after: After, definition: Definition, schedule: At, ended: Ended, rules: RetryRules) -> After:
    """Used up, unless the error may pass, or something is still planned: the slot itself, where a run by hand came
    before it, and what is planned for it (a retry, a late run), where a run by hand after it has not started."""
    never_started = ended.status is Status.SKIPPED or ended.reason is Reason.LAUNCH_LOST
    served = ended.forced and parse_at(schedule.at) <= ended.asked_ms and not never_started
    if after.deadline is not None and not served:
        return after
    after = after._replace(deadline=None)
    if _is_failure(ended):
        retry_ms = _retry_ms(after, ended, rules)
        if retry_ms is not None:
            return after._replace(deadline=Deadline(retry_ms, Kind.RETRY))
    if ended.status is Status.OK and deletes_itself(definition):
        return after._replace(fate=Fate.DELETED)
    return after._replace(fate=Fate.USED_UP)


def _failed(after: After, ended: Ended, rules: RetryRules) -> After:
    """A scheduled run of a recurring job failed: off, a quick retry before the next slot, or backoff."""
    errors = after.consecutive_errors
    if auto_disable.after_failures(errors, rules.disable_after, recurring=True):
        return after._replace(deadline=None, backoff_until_ms=None, fate=Fate.AUTO_DISABLED)
    natural = after.deadline
    earliest_ms = ended.ended_ms + backoff.backoff_ms(rules, errors)
    if natural is not None and natural.kind is Kind.CATCH_UP:
        # The missed slots that still wait come in the place of a retry, as late as any slot after a failure.
        return after._replace(deadline=Deadline(max(natural.due_ms, earliest_ms), Kind.CATCH_UP, natural.slot))
    retry_ms = _retry_ms(after, ended, rules)
    if retry_ms is not None and (natural is None or retry_ms < natural.due_ms):
        return after._replace(deadline=Deadline(retry_ms, Kind.RETRY))
    if natural is not None and natural.due_ms < earliest_ms:
        return after._replace(deadline=Deadline(earliest_ms, Kind.BACKOFF))
    return after


def _retry_ms(after: After, ended: Ended, rules: RetryRules) -> int | None:
    failure = retry.classify(ended.reason, ended.message)
    delay_ms = backoff.retry_delay_ms(rules, failure, after.consecutive_errors, ended.seed)
    return None if delay_ms is None else max(ended.ended_ms + delay_ms, ended.now_ms)


def _with_gap(deadline: Deadline | None, earliest_ms: int, now_ms: int) -> Deadline | None:
    """A slot right after a run waits a moment; it keeps its own time as its slot. One that has come already stays:
    whether it was missed is for catch-up to say."""
    if deadline is None or deadline.kind is not Kind.SLOT or not now_ms < deadline.due_ms < earliest_ms:
        return deadline
    return Deadline(earliest_ms, Kind.SLOT, deadline.slot)
