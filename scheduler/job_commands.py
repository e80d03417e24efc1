"""Adding, editing and removing jobs."""

import msgspec

from cronward.protocol import ids
from cronward.protocol import job as jobs
from cronward.protocol.control import JobRef, RemoveParams, UpdateParams
from cronward.protocol.errors import Code, CronwardError, InvalidRequest
from cronward.protocol.outcome import Reason
from cronward.protocol.patch import patch_definition
from cronward.protocol.spelling import same_expression
from cronward.protocol.views import AddResult, JobView, RemoveAnswer
from cronward.schedule import pacing, planner
from cronward.schedule.at import PAST_GRACE_MS, parse_at
from cronward.schedule.deadline import Kind
from cronward.schedule.refusal import refusal
from cronward.scheduler import aftermath, cancellation, changes, coming, due, job_views, ledger, slot_decisions
from cronward.scheduler.caller import Caller
from cronward.scheduler.effects import JobEvent
from cronward.scheduler.rows import JobRow, LiveRow, find_job, live_run, text
from cronward.scheduler.slot_decisions import Decision
from cronward.scheduler.world import Turn

_CONVERGED = ("schedule", "pacing", "payload", "delivery", "display_name", "retry", "catch_up")
"""What adding again under a declarationKey overwrites; name, target and the rest stay as they are."""


def add(turn: Turn, caller: Caller, raw: dict[str, object]) -> JobView | AddResult:
    """cron.add. With a declarationKey that exists the job is brought in line instead."""
    definition = jobs.parse_definition(raw)
    _permit(turn, caller)
    key = definition.declaration_key
    if key is None:
        return _insert(turn, caller, definition)
    row = turn.store.row("job_by_declaration_key", declaration_key=key)
    if row is None:
        return AddResult(created=True, updated=False, job=_insert(turn, caller, definition))
    return _converge(turn, caller, resolve(turn, text(row[0])), definition, raw)


def update(turn: Turn, caller: Caller, params: UpdateParams) -> JobView:
    """cron.update: a patch, held against the revision that the caller saw if it names one."""
    job = resolve_ref(turn, params)
    if params.expected_config_revision not in (None, job.revision):
        raise CronwardError(
            Code.JOB_CHANGED,
            f"job {job.job_id} was changed by somebody else; read it again",
            expectedConfigRevision=params.expected_config_revision,
            actualConfigRevision=job.revision,
        )
    _permit(turn, caller)
    patched = patch_definition(_definition(job), params.patch)
    view = _replace(turn, caller, job, patched, reschedule=params.reschedule)
    live = live_run(turn.store, job.job_id)
    if params.cancel and live is not None:
        cancellation.cancel(turn, live.run_id, str(caller), "job edited with cancel")
    return view


def remove(turn: Turn, caller: Caller, params: RemoveParams) -> RemoveAnswer:
    """cron.remove: the queued request goes, the active run is asked to end; its history stays."""
    job = resolve_ref(turn, params)
    live = live_run(turn.store, job.job_id)
    if live is not None and live.state == "queued":
        ledger.withdraw(turn, live.run_id, Reason.REMOVED, "the job was removed")
    elif live is not None:
        cancellation.cancel(turn, live.run_id, str(caller), "the job was removed")
    _note_given_up(turn, job)
    turn.store.run("delete_job", position=job.position)
    definition = aftermath.readable(job)
    before = changes.scheduling(definition) if definition else None
    changes.note(turn, caller, "removed", changes.Detail(before=before, name=job.name), job.job_id)
    turn.effects.job_events.append(JobEvent("removed", job.job_id))
    active = live is not None and live.state == "active"
    return RemoveAnswer(ok=True, removed=True, cancelling=live.run_id if live and active else None)


def resolve_ref(turn: Turn, ref: JobRef) -> JobRow:
    """The job that `id` or `jobId` names."""
    if (ref.id is None) == (ref.job_id is None):
        raise InvalidRequest("id", "exactly one of id and jobId is needed")
    return resolve(turn, ref.id or ref.job_id or "")


def resolve(turn: Turn, name: str) -> JobRow:
    """A job by its id, else by its name, whatever its case, if only one job has it."""
    job = find_job(turn.store, name)
    if job is not None:
        return job
    named = [text(row[0]) for row in turn.store.rows("jobs_by_name", name=name)]
    if len(named) > 1:
        shown = ", ".join(named[:3]) + (" and others" if len(named) > 3 else "")
        raise CronwardError(
            Code.JOB_AMBIGUOUS,
            f"several jobs are named {name!r}; say which by its id: {shown}",
            matches=shown,
        )
    job = find_job(turn.store, named[0]) if named else None
    if job is None:
        raise CronwardError(Code.JOB_NOT_FOUND, f"cron job not found: {name}", jobId=name)
    return job


def _permit(turn: Turn, caller: Caller) -> None:
    """Commands run as the service's user: whoever acts for somebody else needs the operator's leave."""
    if caller.acting_for is not None and not turn.world.settings.config.command.remote:
        raise CronwardError(
            Code.FORBIDDEN, f"command jobs are off for remote callers ({caller.acting_for}); set command.remote = true"
        )


def _insert(turn: Turn, caller: Caller, definition: jobs.Definition) -> JobView:
    job_id = ids.new_job_id()
    settled = _settled(turn, definition, job_id)
    data = jobs.encode(settled)
    row = turn.store.row(
        "insert_job",
        job_id=job_id,
        name=settled.name,
        declaration_key=settled.declaration_key,
        enabled=int(settled.enabled),
        schedule_kind=jobs.kind(settled.schedule),
        definition=data.decode(),
        revision=jobs.revision(data),
        now_ms=turn.now_ms,
    )
    next_due_ms = _first_deadline(turn, settled, job_id)
    turn.store.run("insert_job_state", position=row[0] if row else None, next_due_ms=next_due_ms)
    changes.note(turn, caller, "added", changes.Detail(after=changes.scheduling(settled)), job_id)
    return _told(turn, job_id, "added")


def _converge(turn: Turn, caller: Caller, job: JobRow, wanted: jobs.Definition, raw: dict[str, object]) -> AddResult:
    current = _definition(job)
    stated = {field: getattr(wanted, field) for field in _CONVERGED}
    stated["schedule"] = _keep_settled(current.schedule, wanted.schedule)
    stated["pacing"] = pacing.settle(wanted.pacing, wanted.schedule)
    if jobs.kind(wanted.schedule) != jobs.kind(current.schedule):
        stated["delete_after_run"] = wanted.delete_after_run
    if "enabled" in raw:
        stated["enabled"] = wanted.enabled and not (
            stated["schedule"] == current.schedule and _is_used_up(current, turn.now_ms)
        )
    target = msgspec.structs.replace(current, **stated)
    if target == current:
        view = job_views.load_view(turn.store, job.job_id)
        return AddResult(created=False, updated=False, job=coming.with_slots(turn, view))
    return AddResult(created=False, updated=True, job=_replace(turn, caller, job, target))


def _replace(turn: Turn, caller: Caller, job: JobRow, target: jobs.Definition, *, reschedule: bool = False) -> JobView:
    """Stores a new definition. A change of schedule or enablement takes the queued request back and plans anew."""
    current = _definition(job)
    schedule = _keep_settled(current.schedule, target.schedule)
    target = msgspec.structs.replace(target, schedule=schedule, pacing=pacing.settle(target.pacing, schedule))
    if schedule != current.schedule:
        target = _settled(turn, target, job.job_id)
    elif job.scheduled_ms > turn.now_ms and isinstance(schedule, jobs.Every):
        target = msgspec.structs.replace(target, schedule=_begun(schedule, turn.now_ms))
    data = jobs.encode(target)
    turn.store.run(
        "update_job",
        position=job.position,
        name=target.name,
        enabled=int(target.enabled),
        schedule_kind=jobs.kind(target.schedule),
        definition=data.decode(),
        revision=jobs.revision(data),
        now_ms=turn.now_ms,
    )
    if target.enabled and not current.enabled:
        turn.store.run("forget_failures", position=job.position)
    if reschedule or changes.scheduling(target) != changes.scheduling(current):
        _activate_schedule(turn, job, current, target)
    changes.note_update(turn, caller, job.job_id, current, target, changes.Detail(rescheduled=reschedule))
    return _told(turn, job.job_id, "updated")


def _activate_schedule(turn: Turn, job: JobRow, current: jobs.Definition, target: jobs.Definition) -> None:
    """Planned from now on, so that an edit never makes up a missed slot; what an active run leads to does not count."""
    live = live_run(turn.store, job.job_id)
    _note_given_up(turn, job)
    turn.store.run(
        "activate_schedule",
        position=job.position,
        next_due_ms=_first_deadline(turn, target, job.job_id),
        now_ms=turn.now_ms,
        while_active=int(live is not None and live.state == "active"),
    )
    _withdraw_queued(turn, live, current, target)
    turn.world.review.look_again()


def _note_given_up(turn: Turn, job: JobRow) -> None:
    """What the job was put off for, and what came while nobody looked, is not run any more."""
    deadline = job.deadline
    if deadline is None:
        return
    since_ms = deadline.slot if deadline.kind in (Kind.SLOT, Kind.CATCH_UP) else deadline.due_ms
    if deadline.kind is Kind.CATCH_UP or since_ms <= turn.now_ms:
        slot_decisions.note(turn, job.job_id, Decision.DROPPED, since_ms, turn.now_ms)


def _withdraw_queued(turn: Turn, live: LiveRow | None, current: jobs.Definition, target: jobs.Definition) -> None:
    """A slot of the old schedule goes; a run that somebody asked for beside the schedule stays. One that was forced
    stays even if the job is disabled, as it may be asked for then too."""
    if live is None or live.state != "queued" or live.mode == "force":
        return
    if current.enabled and not target.enabled:
        ledger.withdraw(turn, live.run_id, Reason.DISABLED, "the job was disabled before the run started")
    elif live.mode not in aftermath.BESIDE_THE_SCHEDULE:
        ledger.withdraw(turn, live.run_id, Reason.RESCHEDULED, "the schedule was changed before the run started")


def _settled(turn: Turn, definition: jobs.Definition, job_id: str) -> jobs.Definition:
    config = turn.world.settings.config
    schedule = planner.settle(definition.schedule, job_id=job_id, now_ms=turn.now_ms, default_tz=config.default_tz)
    return msgspec.structs.replace(
        definition, schedule=schedule, pacing=pacing.settle(definition.pacing, definition.schedule)
    )


def _keep_settled(current: jobs.Schedule, wanted: jobs.Schedule) -> jobs.Schedule:
    """What was filled in at creation (zone, stagger, anchor) stays where the new schedule says nothing about it."""
    if isinstance(current, jobs.Cron) and isinstance(wanted, jobs.Cron):
        tz = current.tz if wanted.tz is None else wanted.tz
        if not same_expression(wanted.expr, current.expr):
            return msgspec.structs.replace(wanted, tz=tz)
        stagger = current.stagger_ms if wanted.stagger_ms is None else wanted.stagger_ms
        return msgspec.structs.replace(current, tz=tz, stagger_ms=stagger)
    if isinstance(current, jobs.At) and isinstance(wanted, jobs.At):
        return current if parse_at(current.at) == parse_at(wanted.at) else wanted
    if isinstance(current, jobs.Every) and isinstance(wanted, jobs.Every):
        same_grid = wanted.anchor_ms is None and wanted.every_ms == current.every_ms
        return current if same_grid else wanted
    return wanted


def _begun(schedule: jobs.Every, now_ms: int) -> jobs.Every:
    """The same grid, begun by now: a clock that was ahead was its anchor."""
    anchor_ms = now_ms if schedule.anchor_ms is None else schedule.anchor_ms
    intervals = -(-max(0, anchor_ms - now_ms) // schedule.every_ms)
    begun_ms = anchor_ms - intervals * schedule.every_ms
    return msgspec.structs.replace(schedule, anchor_ms=begun_ms if begun_ms >= 0 else now_ms)


def _first_deadline(turn: Turn, definition: jobs.Definition, job_id: str) -> int | None:
    """From now on; a one-shot of the last minute is due at once. A schedule that is over is refused."""
    if not definition.enabled:
        return None
    schedule = definition.schedule
    if isinstance(schedule, jobs.At):
        _check_not_over(turn, schedule, job_id)
        return parse_at(schedule.at)
    try:
        slot_ms = due.next_free_slot_ms(turn, schedule, job_id)
    except planner.Unplannable as error:
        raise InvalidRequest("schedule", f"cannot be computed: {error}") from None
    if slot_ms is None:
        raise InvalidRequest("schedule", "is over: it has no further slot; give another one, or run the job by hand")
    return slot_ms


def _check_not_over(turn: Turn, schedule: jobs.At, job_id: str) -> None:
    """A one-shot has one slot: enabled without it, it would wait for nothing."""
    at_ms = parse_at(schedule.at)
    run = turn.store.row("run_of_one_shot", job_id=job_id, at_ms=at_ms, now_ms=turn.now_ms)
    if run is not None:
        problem = "is over" if run[0] == "skipped" else "has had its run"
    elif at_ms < turn.now_ms - PAST_GRACE_MS:
        problem = "is over"
    else:
        return
    allowed = "another time, or a run by hand"
    raise refusal("schedule.at", problem, value=schedule.at, allowed=allowed)


def _is_used_up(definition: jobs.Definition, now_ms: int) -> bool:
    """A one-shot that is off since it had its slot: to declare it again is no new slot."""
    schedule = definition.schedule
    return isinstance(schedule, jobs.At) and not definition.enabled and parse_at(schedule.at) <= now_ms


def _definition(job: JobRow) -> jobs.Definition:
    try:
        return job.decode()
    except msgspec.DecodeError as error:
        raise InvalidRequest("", f"job {job.job_id} cannot be edited: its definition cannot be read: {error}") from None


def _told(turn: Turn, job_id: str, action: str) -> JobView:
    view = job_views.load_view(turn.store, job_id)
    turn.effects.job_events.append(JobEvent(action, job_id, view))
    shared = len(turn.store.rows("jobs_by_name", name=view.name)) > 1
    return msgspec.structs.replace(coming.with_slots(turn, view), name_shared=shared)
