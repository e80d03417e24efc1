"""cron.why: gathers the facts about a job and its slot, and tells what they explain."""

from cronward.protocol.control import WhyParams
from cronward.protocol.errors import Code, CronwardError, InvalidRequest
from cronward.protocol.job import Cron, Schedule
from cronward.protocol.views import SlotView, WhyView
from cronward.protocol.why import Cause
from cronward.schedule import around, planner
from cronward.scheduler import facts as kept
from cronward.scheduler import run_views, why
from cronward.scheduler.facts import Facts
from cronward.scheduler.job_commands import resolve_ref
from cronward.scheduler.rows import find_run, text
from cronward.scheduler.world import Turn

REMOVALS_LOOKED_AT = 10_000
"""Changes among which a removed job is looked for by its name, the newest ones."""


def explain(turn: Turn, params: WhyParams) -> WhyView:
    """cron.why. A removed job is still known by its id or name, as long as its changes are kept."""
    job_id, name = _job(turn, params)
    facts = kept.load(turn.world, turn.store, job_id)
    if not facts.spells:
        raise InvalidRequest("id", f"the definition of job {job_id} cannot be read, and no change of it is kept")
    slot_ms = _slot_meant(turn, facts, params)
    said = why.explain(kept.about(turn.store, facts, slot_ms), slot_ms, turn.now_ms)
    schedule = _schedule(facts, slot_ms)
    since_ms = min(spell.from_ms for spell in facts.spells)
    nearest, note = _around(schedule, job_id, slot_ms, since_ms if since_ms <= turn.now_ms else slot_ms)
    if said.cause is Cause.REMOVED:
        nearest = [slot for slot in nearest if slot.at_ms <= slot_ms]
    run = find_run(turn.store, said.run_id) if said.run_id is not None else None
    return WhyView(
        job_id=job_id,
        job_name=name or facts.last_name,
        asked_ms=slot_ms if params.at_ms is None else params.at_ms,
        now_ms=turn.now_ms,
        cause=said.cause,
        tz=schedule.tz or "UTC" if isinstance(schedule, Cron) else "UTC",
        slot_ms=said.slot_ms,
        late_ms=said.late_ms,
        delayed_by=said.delayed_by,
        run=run_views.run_view(turn.world, run) if run else None,
        since_ms=said.since_ms,
        until_ms=said.until_ms,
        by=said.by,
        detail=said.detail,
        note=said.note or (note if said.slot_ms is not None else None),
        nearest=nearest,
    )


def _job(turn: Turn, params: WhyParams) -> tuple[str, str | None]:
    """(id, name); the name of a job that is gone is in its last change."""
    try:
        job = resolve_ref(turn, params)
    except CronwardError as error:
        if error.code is not Code.JOB_NOT_FOUND:
            raise
        asked = params.id or params.job_id or ""
        if turn.store.rows("changes_of_job", job_id=asked):
            return asked, None
        removed = turn.store.row("removed_job", name=asked, looked_at=REMOVALS_LOOKED_AT)
        if removed is None:
            raise
        return text(removed[0]), None
    return job.job_id, job.name


def _schedule(facts: Facts, at_ms: int) -> Schedule | None:
    """The one in force at that time, else the first that is known, or the last before a removal."""
    known = [spell for spell in facts.spells if spell.scheduling is not None]
    before = [spell for spell in known if spell.from_ms <= at_ms]
    spell = before[-1] if before else known[0] if known else None
    return spell.scheduling.schedule if spell and spell.scheduling else None


def _slot_meant(turn: Turn, facts: Facts, params: WhyParams) -> int:
    at_ms = params.at_ms
    row = None
    if at_ms is not None:
        until_ms = at_ms + params.within_ms
        row = turn.store.row("runs_within", job_id=facts.job_id, from_ms=at_ms, until_ms=until_ms)
    run_ms = row[0] if row and isinstance(row[0], int) else None
    try:
        return why.slot_meant(facts, at_ms, turn.now_ms, within_ms=params.within_ms, run_ms=run_ms)
    except planner.Unplannable:
        return turn.now_ms if at_ms is None else at_ms


def _around(schedule: Schedule | None, job_id: str, at_ms: int, since_ms: int) -> tuple[list[SlotView], str | None]:
    """The slots before and after, and what is noted of the one at that time; nothing of what cannot be computed, nor
    of what the schedule would have had before the job was there, `since_ms`."""
    if schedule is None:
        return [], None
    try:
        return _nearest(schedule, job_id, at_ms, since_ms), _note(schedule, job_id, at_ms)
    except planner.Unplannable:
        return [], None


def _nearest(schedule: Schedule, job_id: str, at_ms: int, since_ms: int) -> list[SlotView]:
    before_ms = around.previous_slot_ms(schedule, job_id=job_id, before_ms=at_ms)
    before: list[SlotView] = []
    if before_ms is not None and before_ms > since_ms:
        before = planner.preview(schedule, job_id=job_id, after_ms=before_ms - 1, count=1)
    return before + planner.preview(schedule, job_id=job_id, after_ms=max(at_ms, since_ms), count=1)


def _note(schedule: Schedule, job_id: str, slot_ms: int) -> str | None:
    slots = planner.preview(schedule, job_id=job_id, after_ms=slot_ms - 1, count=1)
    return slots[0].note if slots and slots[0].at_ms == slot_ms else None
