"""Slots that were not served in time: the job's catch-up policy decides, and what was decided is kept for `why`."""

from typing import NamedTuple

from cronward.protocol import job as jobs
from cronward.protocol import log
from cronward.schedule import catch_up, planner
from cronward.schedule.catch_up import Missed, Policy
from cronward.schedule.deadline import Deadline, Kind
from cronward.scheduler import slot_decisions
from cronward.scheduler.rows import JobRow, live_run
from cronward.scheduler.slot_decisions import Decision
from cronward.scheduler.world import Turn

WAIT_MS = 5_000
"""How often a one-shot that is held up by a run by hand is looked at."""


class Course(NamedTuple):
    """What happens at a deadline: the slot that is requested now, if one is, and the deadline after it."""

    slot_ms: int | None
    then: Deadline | None


def missed(turn: Turn, job: JobRow, definition: jobs.Definition, deadline: Deadline) -> Course:
    """The deadline came while nobody looked. A run that was live when it came consumes it; one that was asked for
    later, by hand or for an earlier missed slot, is waited for. Raises Unplannable."""
    config = turn.world.settings.config.catch_up
    rules = catch_up.rules(config, definition.catch_up)
    found = catch_up.missed(definition.schedule, rules, job_id=job.job_id, oldest_ms=deadline.slot, now_ms=turn.now_ms)
    natural = None if found.natural_ms is None else Deadline(found.natural_ms)
    live = live_run(turn.store, job.job_id)
    if live is not None and (isinstance(definition.schedule, jobs.At) or live.requested_ms <= deadline.slot):
        return Course(deadline.slot, natural)  # which will be consumed
    place = _place(turn, found, is_busy=live is not None)
    if place is None:
        _note(turn, job, Decision.DROPPED, deadline.slot, turn.now_ms)
        return Course(None, natural)
    slot_ms, *rest = found.wanted_ms
    if slot_ms > deadline.slot:
        _note(turn, job, Decision.DROPPED, deadline.slot, slot_ms - 1)
    if place.due_ms > turn.now_ms:
        _note(turn, job, Decision.DEFERRED, slot_ms, place.due_ms)
        return Course(None, place)
    return Course(slot_ms, _following(turn, job, Missed(rest, found.natural_ms)))


def _place(turn: Turn, found: Missed, *, is_busy: bool) -> Deadline | None:
    """When the first of the missed slots is run; None if there is none, or no time before the next slot."""
    if not found.wanted_ms:
        return None
    if not is_busy:
        return turn.world.attention.queue.deadline(found.wanted_ms[0], found.natural_ms)
    place = catch_up.following(found, catch_up.pace(turn.world.settings.config.catch_up), turn.now_ms)
    return place if place is not None and place.kind is Kind.CATCH_UP else None


def deferred(turn: Turn, job: JobRow, definition: jobs.Definition, deadline: Deadline) -> Course:
    """The time of a missed slot that had to wait has come. Raises Unplannable."""
    config = turn.world.settings.config.catch_up
    natural_ms = planner.next_slot_ms(definition.schedule, job_id=job.job_id, after_ms=turn.now_ms)
    if live_run(turn.store, job.job_id) is not None:
        if isinstance(definition.schedule, jobs.At):
            return Course(None, Deadline(turn.now_ms + WAIT_MS, Kind.CATCH_UP, deadline.slot))
        return Course(None, _following(turn, job, Missed([deadline.slot], natural_ms)))
    rest = []
    if catch_up.rules(config, definition.catch_up).policy is Policy.ALL:
        next_ms = planner.next_slot_ms(definition.schedule, job_id=job.job_id, after_ms=deadline.slot)
        rest = [next_ms] if next_ms is not None and next_ms <= turn.now_ms else []
    return Course(deadline.slot, _following(turn, job, Missed(rest, natural_ms)))


def _following(turn: Turn, job: JobRow, left: Missed) -> Deadline | None:
    """The next of the missed slots that are left; without time for them, the schedule's next slot."""
    pace = catch_up.pace(turn.world.settings.config.catch_up)
    then = catch_up.following(left, pace, turn.now_ms)
    if left.wanted_ms and (then is None or then.kind is not Kind.CATCH_UP):
        _note(turn, job, Decision.DROPPED, left.wanted_ms[0], turn.now_ms)
    return then


def wait_for_live_run(turn: Turn, job: JobRow, slot_ms: int) -> None:
    """A run by hand goes on at the only slot of a one-shot: the slot is served within WAIT_MS after that is over."""
    due_ms = turn.now_ms + WAIT_MS
    turn.store.run(
        "set_deadline", position=job.position, next_due_ms=due_ms, due_kind=Kind.CATCH_UP, due_slot_ms=slot_ms
    )
    _note(turn, job, Decision.DEFERRED, slot_ms, due_ms)


def _note(turn: Turn, job: JobRow, decision: Decision, slot_ms: int, until_ms: int) -> None:
    slot_decisions.note(turn, job.job_id, decision, slot_ms, until_ms)
    said = "a missed slot is run later" if decision is Decision.DEFERRED else "missed slots are left out"
    log.info("slot.missed", said, job=job.job_id, decision=str(decision), slot_ms=slot_ms, until_ms=until_ms)
