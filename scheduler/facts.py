"""What is kept that can explain a slot of a job: its schedules over time, runs, decisions, lives and pauses."""

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from cronward.protocol import job as jobs
from cronward.schedule import backoff
from cronward.schedule.deadline import Deadline
from cronward.schedule.far_ahead import is_far_ahead
from cronward.schedule.planner import Unplannable
from cronward.scheduler.caller import Caller
from cronward.scheduler.changes import Detail, Scheduling
from cronward.scheduler.flags import UNREADABLE
from cronward.scheduler.retention import FORGOTTEN_UNTIL
from cronward.scheduler.rows import JobRow, RunRow, find_job, integer, live_run, run_rows, text
from cronward.scheduler.slot_decisions import Decision
from cronward.scheduler.store import Row, Store
from cronward.scheduler.world import Mode, World


class Change(msgspec.Struct, frozen=True):
    """A row of `changes`."""

    at_ms: int
    action: str
    by: str
    detail: Detail


class Spell(msgspec.Struct, frozen=True):
    """A time during which one scheduling was in force, and the change that began it (None: longer ago than is kept).
    `scheduling` is None while there is no job: before it is added, and once it is removed."""

    from_ms: int
    scheduling: Scheduling | None
    began: Change | None


class Outage(msgspec.Struct, frozen=True):
    """From when to when nothing became due; `until_ms` None is still. `by` is None where the scheduler was down.
    `is_estimate`: after a crash its beginning is when the scheduler was last known to be there."""

    since_ms: int
    until_ms: int | None
    by: str | None = None
    is_estimate: bool = False

    def covers(self, at_ms: int) -> bool:
        return self.since_ms <= at_ms and (self.until_ms is None or at_ms < self.until_ms)


class Decided(msgspec.Struct, frozen=True, array_like=True):
    """A row of `slot_decisions`."""

    decision: Decision
    slot_ms: int
    until_ms: int
    run_id: str | None
    at_ms: int


class Life(msgspec.Struct, frozen=True, array_like=True):
    """A row of `lives`."""

    started_ms: int
    seen_ms: int
    ended_ms: int | None


class Facts(msgspec.Struct, frozen=True):
    """About one job, and around one slot of it. Spells and outages are in the order of time.

    `runs` are the last one before the slot that the schedule asked for, the slot's own, one that was asked for by hand
    at that instant, and the schedule's first one after it.
    `deadline`, `gate_ms` (backoff), `far_ahead`, `flag` are of now; `queue_held_by` says why queued runs do not start,
    `holds_up` why due jobs are not served now; None: nothing is in the way. All runs from `kept_since_ms` on are kept.
    """

    job_id: str
    spells: list[Spell]
    runs: list[RunRow] = []
    decisions: list[Decided] = []
    down: list[Outage] = []
    paused: list[Outage] = []
    deadline: Deadline | None = None
    gate_ms: int | None = None
    far_ahead: bool = False
    flag: str | None = None
    holds_up: str | None = None
    queue_held_by: str | None = None
    kept_since_ms: int = 0

    @property
    def last_name(self) -> str | None:
        """Of a job that is gone, as long as that change is kept."""
        began = self.spells[-1].began if self.spells else None
        return began.detail.name if began else None


def load(world: World, store: Store, job_id: str) -> Facts:
    """Everything but what belongs to one slot. No spells: there never was such a job, as far as is known."""
    job = find_job(store, job_id)
    changes = [_change(row) for row in store.rows("changes_of_job", job_id=job_id)]
    definition = _readable(job.definition) if job else None
    lives = [msgspec.convert(row, Life) for row in store.rows("all_lives")]
    return Facts(
        job_id=job_id,
        spells=spells(changes, definition, job.created_ms if job else None),
        down=downtimes(lives),
        paused=pauses([_change(row) for row in store.rows("changes_of_service")], lives),
        deadline=job.deadline if job else None,
        gate_ms=_gate_ms(world, store, job, definition),
        far_ahead=_is_far_ahead(world, job, definition),
        flag=_flag(job, definition),
        holds_up=_holds_up(world),
        queue_held_by=_queue_held_by(world, store),
        kept_since_ms=_kept_since_ms(world, store, job_id),
    )


def about(store: Store, facts: Facts, slot_ms: int) -> Facts:
    """With what belongs to one slot."""
    return msgspec.structs.replace(
        facts,
        runs=run_rows(store.rows("runs_around", job_id=facts.job_id, slot_ms=slot_ms)),
        decisions=[
            msgspec.convert(row, Decided, strict=False)
            for row in store.rows("decisions_about", job_id=facts.job_id, slot_ms=slot_ms)
        ],
    )


def spells(changes: Iterable[Change], definition: jobs.Definition | None, created_ms: int | None) -> list[Spell]:
    """The schedulings of a job, one after the other. Without changes, what it is now, since its creation."""
    found: list[Spell] = []
    for change in changes:
        detail = change.detail
        if not found and detail.before is not None:
            found.append(Spell(created_ms if created_ms is not None else 0, detail.before, None))
        if change.action == "removed":
            found.append(Spell(change.at_ms, None, change))
        elif detail.after is not None:
            found.append(Spell(change.at_ms, detail.after, change))
    if not found and definition is not None and created_ms is not None:
        found.append(Spell(created_ms, Scheduling(definition.schedule, definition.enabled), None))
    return found


def downtimes(lives: list[Life]) -> list[Outage]:
    """Between the end of each life, or when it was last seen, and the beginning of the next."""
    found = []
    for earlier, later in pairwise(lives):
        since_ms = earlier.seen_ms if earlier.ended_ms is None else earlier.ended_ms
        if since_ms < later.started_ms:
            found.append(Outage(since_ms, later.started_ms, is_estimate=earlier.ended_ms is None))
    return found


def pauses(changes: Iterable[Change], lives: list[Life]) -> list[Outage]:
    """From a pause or drain to what ended it: the resume, for a drain also the next start. A pause may begin while a
    drain lasts."""
    found: list[Outage] = []
    begun: dict[str, Change] = {}
    for change in changes:
        if change.action == "resumed":
            found += [_pause(each, change.at_ms, lives) for each in begun.values()]
            begun = {}
        elif change.action == "paused":
            begun.setdefault(change.action, change)
        elif change.action == "drained":
            if (before := begun.pop(change.action, None)) is not None:
                found.append(_pause(before, None, lives))
            begun[change.action] = change
    found += [_pause(each, None, lives) for each in begun.values()]
    return sorted(found, key=lambda outage: outage.since_ms)


def _pause(begun: Change, resumed_ms: int | None, lives: list[Life]) -> Outage:
    starts = [life.started_ms for life in lives if life.started_ms > begun.at_ms] if begun.action == "drained" else []
    ends = [*starts, *([] if resumed_ms is None else [resumed_ms])]
    return Outage(begun.at_ms, min(ends, default=None), begun.by)


def _holds_up(world: World) -> str | None:
    if world.mode is not Mode.RUNNING:
        return f"the service is {world.mode}"
    if not world.caught_up:
        return "no launcher has said yet what became of earlier runs"
    return world.storage_error


def _flag(job: JobRow | None, definition: jobs.Definition | None) -> str | None:
    """What flags the job, also before its next slot does."""
    if job is None:
        return None
    return job.flag or (UNREADABLE if definition is None else None)


def _gate_ms(world: World, store: Store, job: JobRow | None, definition: jobs.Definition | None) -> int | None:
    if job is None or definition is None or live_run(store, job.job_id) is not None:
        return None  # a live run consumes what comes, and its end says what follows
    rules = backoff.rules(world.settings.config.retry, definition.retry)
    return backoff.gate_ms(rules, definition.schedule, job.backoff_until_ms, world.clock.wall_ms())


def _is_far_ahead(world: World, job: JobRow | None, definition: jobs.Definition | None) -> bool:
    if job is None or definition is None or job.deadline is None:
        return False
    try:
        return is_far_ahead(
            definition.schedule,
            job.deadline,
            job_id=job.job_id,
            changed_ms=job.scheduled_ms,
            last_run_ms=job.last_run_ms,
            now_ms=world.clock.wall_ms(),
        )
    except Unplannable:
        return False


def _queue_held_by(world: World, store: Store) -> str | None:
    if not world.link.can_launch():
        return "no launcher can start it"
    active, capacity = store.integer("count_active"), world.settings.config.capacity.runs
    return f"{active} runs are active, and capacity.runs is {capacity}" if active >= capacity else None


def _kept_since_ms(world: World, store: Store, job_id: str) -> int:
    kept = world.settings.config.retention
    row = store.row("surplus_run_of_job", job_id=job_id, keep=kept.runs_per_job - 1)
    oldest_ms = world.clock.wall_ms() - round(kept.days * 86_400_000)
    forgotten = store.row("get_meta", key=FORGOTTEN_UNTIL)
    forgotten_ms = int(text(forgotten[0])) if forgotten else 0
    if forgotten_ms > world.clock.wall_ms():
        forgotten_ms = 0  # of a clock that was ahead
    return max(oldest_ms, integer(row[0]) if row else 0, forgotten_ms)


def _change(row: Row) -> Change:
    at_ms, action, uid, caller, detail = msgspec.convert(row, tuple[int, str, int | None, str | None, str])
    return Change(at_ms, action, str(Caller(uid, None, caller)), _detail(detail))


def _detail(text: str) -> Detail:
    """A detail that names what this release does not know (a removed schedule kind) explains nothing."""
    try:
        return msgspec.json.decode(text, type=Detail)
    except msgspec.DecodeError:
        return Detail(why="the record of this change cannot be read")


def _readable(data: bytes) -> jobs.Definition | None:
    try:
        return jobs.decode(data)
    except msgspec.DecodeError:
        return None
