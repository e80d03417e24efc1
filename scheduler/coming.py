"""When a job will run next: its deadline as it stands, and the slots of its schedule after that."""

import msgspec

from cronward.protocol.job import Schedule
from cronward.protocol.views import JobView, SlotView
from cronward.schedule import backoff, planner
from cronward.schedule.deadline import IN_WORDS, Kind
from cronward.scheduler.world import World

SHOWN = 3


def with_slots(world: World, view: JobView) -> JobView:
    """The same with what it will run next, as add, edit and get answer. Nothing for a job that is off or flagged."""
    if view.schedule is None or not view.enabled:
        return view
    try:
        return msgspec.structs.replace(view, next_slots=_slots(world, view, view.schedule))
    except planner.Unplannable:
        return view


def _slots(world: World, view: JobView, schedule: Schedule) -> list[SlotView]:
    due_ms, kind = view.state.next_run_at_ms, Kind(view.state.due_kind)
    if due_ms is None:
        return []
    rules = backoff.rules(world.settings.config.retry, view.retry)
    gate_ms = backoff.gate_ms(rules, schedule, view.state.backoff_until_ms, world.clock.wall_ms())
    if gate_ms is not None and due_ms < gate_ms and kind in (Kind.SLOT, Kind.BACKOFF):
        due_ms, kind = gate_ms, Kind.BACKOFF
    slots = planner.preview(schedule, job_id=view.id, after_ms=due_ms - 1, count=SHOWN)
    if kind is Kind.SLOT and slots and slots[0].at_ms == due_ms:
        return slots
    first = SlotView(due_ms, planner.local_time(schedule, job_id=view.id, at_ms=due_ms), _reason(view, kind, schedule))
    return [first, *(slot for slot in slots if slot.at_ms > due_ms)][:SHOWN]


def _reason(view: JobView, kind: Kind, schedule: Schedule) -> str:
    slot_ms = view.state.due_slot_ms
    of = "" if slot_ms is None else f": that of {planner.local_time(schedule, job_id=view.id, at_ms=slot_ms)}"
    return IN_WORDS[kind] + of
