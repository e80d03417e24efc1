"""Why a slot did or did not become a run: a pure decision over what is kept. Total: every instant gets a cause."""

import msgspec

from cronward.protocol.job import At, Schedule
from cronward.protocol.why import Cause
from cronward.schedule import around, planner
from cronward.schedule.deadline import IN_WORDS, Deadline, Kind
from cronward.schedule.planner import Unplannable
from cronward.scheduler.changes import CRONWARD
from cronward.scheduler.facts import Decided, Facts, Outage, Spell
from cronward.scheduler.rows import RunRow
from cronward.scheduler.slot_decisions import Decision

WAITED_MS = 1_000
"""A run that became active within this time did not wait."""


class Explanation(msgspec.Struct, frozen=True):
    """The cause, and what belongs to it (see `WhyView`)."""

    cause: Cause
    slot_ms: int | None
    run_id: str | None = None
    late_ms: int | None = None
    delayed_by: Cause | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    by: str | None = None
    detail: str | None = None
    note: str | None = None


def slot_meant(facts: Facts, at_ms: int | None, now_ms: int, *, within_ms: int = 1, run_ms: int | None = None) -> int:
    """The instant that is asked about: with no time given the last slot, else the first one to come. For a time that
    is only meant to within so long, the first slot or run (`run_ms`) in there; for one that the expression names, the
    instant where the job's stagger puts it. Raises Unplannable."""
    job_id = facts.job_id
    spell = _spell_at(facts.spells, now_ms if at_ms is None else at_ms) or facts.spells[0]
    if spell.scheduling is None:
        return _last_before(facts, spell, now_ms) if at_ms is None else at_ms
    schedule = spell.scheduling.schedule
    if at_ms is None:
        previous_ms = around.previous_slot_ms(schedule, job_id=job_id, before_ms=now_ms + 1)
        if previous_ms is not None and previous_ms > spell.from_ms:
            return previous_ms
        next_ms = planner.next_slot_ms(schedule, job_id=job_id, after_ms=now_ms)
        return next_ms or previous_ms or now_ms
    found_ms = [run_ms, planner.next_slot_ms(schedule, job_id=job_id, after_ms=at_ms - 1)]
    if facts.deadline is not None:
        found_ms.append(facts.deadline.due_ms)
    close_ms = [ms for ms in found_ms if ms is not None and at_ms <= ms < at_ms + within_ms]
    staggered_ms = around.staggered_ms(schedule, job_id=job_id, at_ms=at_ms)
    if not close_ms and _is_slot(schedule, job_id, staggered_ms):
        return staggered_ms
    return min(close_ms, default=at_ms)


def _last_before(facts: Facts, removal: Spell, now_ms: int) -> int:
    """The last slot of a job that is gone; now, if it never had one."""
    known = [spell for spell in facts.spells if spell.from_ms <= removal.from_ms and spell.scheduling is not None]
    if not known or known[-1].scheduling is None:
        return now_ms
    schedule = known[-1].scheduling.schedule
    slot_ms = around.previous_slot_ms(schedule, job_id=facts.job_id, before_ms=removal.from_ms + 1)
    return slot_ms if slot_ms is not None and slot_ms > facts.spells[0].from_ms else now_ms


def explain(facts: Facts, at_ms: int, now_ms: int) -> Explanation:
    """What became of the instant `at_ms`. `facts` are about it."""
    for run in facts.runs:
        if run.slot_ms == at_ms:
            return _by_run(facts, run)
    spell = _spell_at(facts.spells, at_ms)
    if spell is None:
        began = facts.spells[0].began
        cause = Cause.NOT_YET_CREATED if began is None or began.action == "added" else Cause.FORGOTTEN
        return Explanation(cause, None, until_ms=facts.spells[0].from_ms, by=began.by if began else None)
    if spell.scheduling is None:
        by, because = (spell.began.by, spell.began.detail.why) if spell.began else (None, None)
        return Explanation(Cause.REMOVED, None, since_ms=spell.from_ms, by=by, detail=because)
    deadline = facts.deadline
    if deadline is not None and deadline.due_ms == at_ms and deadline.is_beside_the_schedule:
        return _special(facts, deadline, now_ms)
    try:
        if not _is_slot(spell.scheduling.schedule, facts.job_id, at_ms):
            return _no_slot(facts, spell.scheduling.schedule, at_ms)
    except Unplannable as error:
        if not spell.scheduling.enabled:
            return _off(facts.spells, spell, at_ms)
        return Explanation(Cause.FLAGGED, None, detail=str(error))
    if not spell.scheduling.enabled:
        return _off(facts.spells, spell, at_ms)
    return _coming(facts, at_ms) if at_ms > now_ms else _past(facts, at_ms, now_ms)


def _spell_at(spells: list[Spell], at_ms: int) -> Spell | None:
    """The one in force; None before the first. Slots come strictly later than what planned them."""
    return next((spell for spell in reversed(spells) if spell.from_ms < at_ms), None)


def _is_slot(schedule: Schedule, job_id: str, at_ms: int) -> bool:
    return around.is_slot(schedule, job_id=job_id, at_ms=at_ms)


def _by_run(facts: Facts, run: RunRow) -> Explanation:
    """The slot has a run of its own."""
    slot_ms = run.slot_ms
    if run.state == "queued":
        return Explanation(Cause.WAITING, slot_ms, run.run_id, detail=facts.holds_up or facts.queue_held_by)
    if run.reason == "launch_lost":
        return Explanation(Cause.LAUNCH_LOST, slot_ms, run.run_id, detail=run.message)
    if run.state == "skipped" and run.started_ms is None:
        return Explanation(Cause.SKIPPED, slot_ms, run.run_id, detail=run.message)
    began_ms = run.started_ms if run.started_ms is not None else run.activated_ms
    late_ms = None if began_ms is None else max(0, began_ms - slot_ms)
    outage = _outage(facts, slot_ms)
    if outage is not None and (outage[1].until_ms is None or run.requested_ms < outage[1].until_ms):
        outage = None  # it was asked for all the same, so that did not hold it up
    return Explanation(
        Cause.RUNNING if run.state == "active" else Cause.RAN,
        slot_ms,
        run.run_id,
        late_ms,
        delayed_by=_delay(facts, run, outage),
        since_ms=outage[1].since_ms if outage else None,
        until_ms=outage[1].until_ms if outage else None,
        by=outage[1].by if outage else None,
    )


def _delay(facts: Facts, run: RunRow, outage: tuple[Cause, Outage] | None) -> Cause | None:
    """What held a run up: an outage, its place in the catch-up, or the queue."""
    if outage is not None:
        return outage[0]
    if any(made.decision is Decision.DEFERRED and made.slot_ms == run.slot_ms for made in facts.decisions):
        return Cause.DEFERRED
    waited = run.activated_ms is not None and run.activated_ms - run.requested_ms > WAITED_MS
    return Cause.WAITING if waited else None


def _outage(facts: Facts, at_ms: int) -> tuple[Cause, Outage] | None:
    """Whether nothing became due then, and why: what is known before what is estimated."""
    known = [(Cause.DOWN, outage) for outage in facts.down if not outage.is_estimate]
    estimated = [(Cause.DOWN, outage) for outage in facts.down if outage.is_estimate]
    outages = (*known, *((Cause.PAUSED, outage) for outage in facts.paused), *estimated)
    return next(((cause, outage) for cause, outage in outages if outage.covers(at_ms)), None)


def _no_slot(facts: Facts, schedule: Schedule, at_ms: int) -> Explanation:
    """The schedule of that time has no slot there; perhaps the clocks took it, or it is one of another schedule."""
    note = around.swallowed(schedule, job_id=facts.job_id, at_ms=at_ms)
    if note is not None:
        return Explanation(Cause.SWALLOWED, None, note=note)
    for index, spell in enumerate(facts.spells):
        scheduling = spell.scheduling
        if (
            scheduling is None
            or scheduling.schedule == schedule
            or not _is_slot(scheduling.schedule, facts.job_id, at_ms)
        ):
            continue
        ended = facts.spells[index + 1] if index + 1 < len(facts.spells) else None
        edge = ended if ended is not None and ended.from_ms <= at_ms else spell
        change = edge.began
        return Explanation(Cause.EDITED, None, since_ms=edge.from_ms, by=change.by if change else None)
    return Explanation(Cause.NOT_A_SLOT, None)


def _off(spells: list[Spell], spell: Spell, at_ms: int) -> Explanation:
    """The job was disabled: by whom is in the change that began the first of the disabled spells."""
    index = spells.index(spell)
    while index > 0 and (before := spells[index - 1].scheduling) is not None and not before.enabled:
        index -= 1
    first = spells[index]
    change = first.began
    cause = Cause.DISABLED
    if change is not None and change.by == str(CRONWARD):
        one_shot = first.scheduling is not None and isinstance(first.scheduling.schedule, At)
        cause = Cause.USED_UP if one_shot else Cause.AUTO_DISABLED
    by, why = (change.by, change.detail.why) if change else (None, None)
    return Explanation(cause, at_ms, since_ms=first.from_ms, by=by, detail=why)


def _special(facts: Facts, deadline: Deadline, now_ms: int) -> Explanation:
    """The job's next run is due beside its schedule: a retry, the end of a backoff, a missed slot that is run late."""
    if deadline.kind is Kind.BACKOFF and facts.gate_ms is not None and deadline.due_ms < facts.gate_ms:
        return Explanation(Cause.BACKOFF, deadline.due_ms, until_ms=facts.gate_ms)
    cause = Cause.COMING if deadline.due_ms > now_ms else Cause.WAITING
    return Explanation(cause, deadline.due_ms, detail=facts.holds_up or IN_WORDS[deadline.kind])


def _coming(facts: Facts, at_ms: int) -> Explanation:
    deadline = facts.deadline
    if facts.flag is not None:
        return Explanation(Cause.FLAGGED, at_ms, detail=facts.flag)
    gated = facts.gate_ms is not None and at_ms < facts.gate_ms
    if gated and deadline is not None and deadline.kind in (Kind.SLOT, Kind.BACKOFF):
        return Explanation(Cause.BACKOFF, at_ms, until_ms=facts.gate_ms)
    if deadline is not None and at_ms < deadline.due_ms and at_ms != deadline.slot:
        if facts.far_ahead or (deadline.kind is Kind.SLOT and at_ms < deadline.slot):
            return Explanation(Cause.FAR_AHEAD, at_ms, until_ms=deadline.due_ms)
        if deadline.kind is Kind.BACKOFF:
            return Explanation(Cause.BACKOFF, at_ms, until_ms=deadline.due_ms)
    return Explanation(Cause.COMING, at_ms, detail=facts.holds_up)


def _past(facts: Facts, at_ms: int, now_ms: int) -> Explanation:
    """A slot of an enabled job that has no run of its own, from what is most certain to what is least."""
    decided = _by_decision(facts, at_ms, now_ms)
    if decided is not None:
        return decided
    deadline, outage = facts.deadline, _outage(facts, at_ms)
    if deadline is not None and deadline.slot <= at_ms and (deadline.due_ms <= now_ms or facts.holds_up is not None):
        since_ms = outage[1].since_ms if outage else None
        return Explanation(Cause.WAITING, at_ms, since_ms=since_ms, detail=facts.holds_up)
    if outage is not None:
        return _missed(_covered_by(facts, at_ms), at_ms, *outage)
    covering = _covered_by(facts, at_ms)
    if covering is not None:
        return Explanation(Cause.COVERED, at_ms, covering.run_id)
    if facts.flag is not None:
        return Explanation(Cause.FLAGGED, at_ms, detail=facts.flag)
    if at_ms < facts.kept_since_ms:
        return Explanation(Cause.FORGOTTEN, at_ms)
    return Explanation(Cause.UNKNOWN, at_ms)


def _by_decision(facts: Facts, at_ms: int, now_ms: int) -> Explanation | None:
    """The newest decision that says what became of the slot."""
    for made in facts.decisions:
        match made.decision:
            case Decision.CONSUMED:
                return Explanation(Cause.CONSUMED, at_ms, made.run_id)
            case Decision.BACKOFF:
                return Explanation(Cause.BACKOFF, at_ms, made.run_id, until_ms=made.until_ms)
            case Decision.DEFERRED if (until_ms := _deferred_until_ms(facts, made, at_ms, now_ms)) is not None:
                return Explanation(Cause.DEFERRED, at_ms, until_ms=until_ms)
            case Decision.DROPPED:
                outage = _outage(facts, at_ms)
                if outage is not None:
                    return _missed(_made_up_by(facts), at_ms, *outage)
                run = _made_up_by(facts)
                return Explanation(Cause.DROPPED, at_ms, run.run_id if run else None, detail=_given_up(facts, made))
    return None


def _given_up(facts: Facts, made: Decided) -> str | None:
    """The change that came before anybody looked at the slot, if one did."""
    change = next((spell.began for spell in facts.spells if spell.from_ms == made.at_ms == made.until_ms), None)
    return None if change is None else f"the job was {change.action} by {change.by} before the slot was looked at"


def _deferred_until_ms(facts: Facts, made: Decided, at_ms: int, now_ms: int) -> int | None:
    """Until when it still waits; None if an edit took its place away."""
    deadline = facts.deadline
    if made.slot_ms != at_ms or deadline is None or deadline.slot != at_ms or deadline.due_ms <= now_ms:
        return None
    return deadline.due_ms


def _missed(run: RunRow | None, at_ms: int, cause: Cause, outage: Outage) -> Explanation:
    return Explanation(
        cause,
        at_ms,
        run.run_id if run else None,
        since_ms=outage.since_ms,
        until_ms=outage.until_ms,
        by=outage.by,
    )


def _covered_by(facts: Facts, at_ms: int) -> RunRow | None:
    """The run that stands for a slot that has none: asked for when the slot had passed, for one before it."""
    return next((run for run in facts.runs if run.slot_ms < at_ms <= run.requested_ms), None)


def _made_up_by(facts: Facts) -> RunRow | None:
    """The run of the latest of the slots that were missed together; the ones before it were left out for it."""
    dropped_until_ms = [made.until_ms for made in facts.decisions if made.decision is Decision.DROPPED]
    return next((run for run in facts.runs if run.slot_ms - 1 in dropped_until_ms), None)
