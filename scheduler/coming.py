"""When a job will run next: its deadline as it stands, and the slots of its schedule after that."""

import msgspec

from cronward.protocol.job import Schedule
from cronward.protocol.views import JobView, SlotView
from cronward.schedule import backoff, catch_up, planner
from cronward.schedule.catch_up import Policy
from cronward.schedule.deadline import IN_WORDS, Deadline, Kind
from cronward.scheduler.rows import served_ahead
from cronward.scheduler.world import Turn

SHOWN = 3


def with_slots(turn: Turn, view: JobView) -> JobView:
    """The same with what it will run next, as add, edit and get answer. Nothing for a job that is off or flagged."""
    if view.schedule is None or not view.enabled:
        return view
    try:
        return msgspec.structs.replace(view, next_slots=_slots(turn, view, view.schedule))
    except planner.Unplannable:
        return view


def _slots(turn: Turn, view: JobView, schedule: Schedule) -> list[SlotView]:
    if view.state.next_run_at_ms is None:
        return []
    deadline = _deadline(turn, view, schedule, view.state.next_run_at_ms)
    slots = _natural(turn, view, schedule, deadline.due_ms)
    if not deadline.is_beside_the_schedule and slots and slots[0].at_ms == deadline.due_ms:
        return slots
    local = planner.local_time(schedule, job_id=view.id, at_ms=deadline.due_ms)
    first = SlotView(deadline.due_ms, local, _reason(turn, view, deadline, schedule))
    return [first, *(slot for slot in slots if slot.at_ms > deadline.due_ms)][:SHOWN]


def _deadline(turn: Turn, view: JobView, schedule: Schedule, due_ms: int) -> Deadline:
    """As it is kept; where the backoff of a run by hand will put it off, as it will be then."""
    state = view.state
    rules = backoff.rules(turn.world.settings.config.retry, view.retry)
    gate_ms = backoff.gate_ms(rules, schedule, state.backoff_until_ms, turn.now_ms)
    kind = Kind(state.due_kind)
    if gate_ms is not None and state.live_run_id is None and due_ms < gate_ms and kind in (Kind.SLOT, Kind.BACKOFF):
        return Deadline(gate_ms, Kind.BACKOFF)
    return Deadline(due_ms, kind, state.due_slot_ms)


def _natural(turn: Turn, view: JobView, schedule: Schedule, from_ms: int) -> list[SlotView]:
    """The slots from the deadline on, but for those that a clock which was ahead has served. What a clock change did
    to the first one is told as of now, where it is the next one of all."""
    ran_ahead = view.last_run_at_ms is not None and view.last_run_at_ms > turn.now_ms
    served_ms = served_ahead(turn.store, view.id, turn.now_ms) if ran_ahead else frozenset[int]()
    count = SHOWN + len(served_ms)
    slots = planner.preview(schedule, job_id=view.id, after_ms=turn.now_ms, count=count)
    if not slots or slots[0].at_ms != from_ms:
        slots = planner.preview(schedule, job_id=view.id, after_ms=from_ms - 1, count=count)
    return [slot for slot in slots if slot.at_ms not in served_ms or slot.at_ms == from_ms][:SHOWN]


def _reason(turn: Turn, view: JobView, deadline: Deadline, schedule: Schedule) -> str:
    of = ""
    if deadline.slot != deadline.due_ms:
        of = f": that of {planner.local_time(schedule, job_id=view.id, at_ms=deadline.slot)}"
    rules = catch_up.rules(turn.world.settings.config.catch_up, view.catch_up)
    more = deadline.kind is Kind.CATCH_UP and rules.policy is Policy.ALL
    return IN_WORDS[deadline.kind] + of + ("; others may follow it" if more else "")
