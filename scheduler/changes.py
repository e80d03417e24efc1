"""Who changed what, and what that did to a job's schedule: written with the change, read by `why`."""

import msgspec

from cronward.protocol import job as jobs
from cronward.scheduler.caller import Caller
from cronward.scheduler.world import Turn

CRONWARD = Caller(None, None, "cronward")
"""The scheduler itself: a one-shot is used up, a job fails too often."""


class Scheduling(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a definition that says when a job is due."""

    schedule: jobs.Schedule
    enabled: bool = True
    pacing: jobs.Pacing | None = None


class Detail(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a change was. `before` and `after` are there if the scheduling changed; a job that is added has only
    `after`, a removed one only `before`, and its name. `rescheduled`: the deadline was computed anew. `why` is for
    people."""

    fields: list[str] = []
    before: Scheduling | None = None
    after: Scheduling | None = None
    rescheduled: bool = False
    name: str | None = None
    why: str | None = None


def scheduling(definition: jobs.Definition) -> Scheduling:
    return Scheduling(definition.schedule, definition.enabled, definition.pacing)


def note(turn: Turn, caller: Caller, action: str, detail: Detail, job_id: str | None = None) -> None:
    """One row. Without a job it concerns the whole service."""
    turn.store.run(
        "insert_change",
        at_ms=turn.now_ms,
        job_id=job_id,
        action=action,
        uid=caller.uid,
        pid=caller.pid,
        caller=caller.acting_for,
        detail=msgspec.json.encode(detail).decode(),
    )


def note_update(
    turn: Turn, caller: Caller, job_id: str, before: jobs.Definition, after: jobs.Definition, detail: Detail
) -> None:
    """An edit: names the fields, and keeps both schedulings if they differ."""
    names = [name for name in jobs.Definition.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    detail = msgspec.structs.replace(detail, fields=names)
    old, new = scheduling(before), scheduling(after)
    if old != new:
        detail = msgspec.structs.replace(detail, before=old, after=new)
    note(turn, caller, "updated", detail, job_id)
