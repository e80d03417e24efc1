"""A patch laid over a job's definition."""

import msgspec

from cronward.protocol.conversion import convert
from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import (
    At,
    CatchUp,
    Command,
    Cron,
    Definition,
    Every,
    Pacing,
    Retry,
    check,
    kind,
    refuse_later_kinds,
)
from cronward.protocol.spelling import same_expression, spelled

_NEVER_CLEARED = ("name", "schedule", "payload", "enabled", "sessionTarget", "wakeMode", "delivery")
_FILLED_IN = {"everyMs": "anchorMs", "expr": "staggerMs"}
"""What was chosen for the first key at creation is chosen anew with a new one."""


def patch_definition(current: Definition, patch: dict[str, object]) -> Definition:
    """`current` with `patch` laid over it: absent is unchanged, null clears what a job can do without. Objects are
    merged key by key; a schedule or payload of another kind is replaced, and with the kind of a schedule what was said
    of one-shots. Raises InvalidRequest."""
    fields: dict[str, object] = msgspec.to_builtins(current)
    _refuse_unchangeable(patch)
    refuse_later_kinds(patch)
    for key, value in spelled(patch).items():
        before = fields.get(key)
        if value is None:
            fields.pop(key, None)
        elif key in _KNOWN and isinstance(value, dict) and isinstance(before, dict):
            fields[key] = _merged(before, value)
        else:
            fields[key] = value
    schedule = fields["schedule"]
    if isinstance(schedule, dict) and schedule.get("kind") != kind(current.schedule) and "deleteAfterRun" not in patch:
        fields.pop("deleteAfterRun", None)
    definition = convert(fields, Definition)
    check(definition)
    return definition


def _refuse_unchangeable(patch: dict[str, object]) -> None:
    for key in ("declarationKey", "owner"):
        if key in patch:
            raise InvalidRequest(key, "cannot be changed after creation")
    for key, part in patch.items():
        if key not in Definition.__struct_encode_fields__:
            raise InvalidRequest(key, f"unknown field `{key}`")
        if key in _KNOWN and isinstance(part, dict):
            _refuse_unknown(key, part)
    for key in _NEVER_CLEARED:
        if key in patch and patch[key] is None:
            raise InvalidRequest(key, "cannot be cleared (got null); leave it out to keep it as it is")


def _refuse_unknown(key: str, part: dict[str, object]) -> None:
    """Where it would be cleared; with a value it is refused by its type."""
    for name, value in part.items():
        if value is None and name not in _KNOWN[key]:
            raise InvalidRequest(f"{key}.{name}", f"unknown field `{name}`")


def _fields(*kinds: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset({"kind"}.union(*(kind.__struct_encode_fields__ for kind in kinds)))


_KNOWN = {
    "schedule": _fields(At, Every, Cron),
    "payload": _fields(Command),
    "retry": _fields(Retry),
    "catchUp": _fields(CatchUp),
    "pacing": _fields(Pacing),
}


def _merged(before: dict[str, object], patch: dict[str, object]) -> dict[str, object]:
    wanted = patch.get("kind", before.get("kind"))
    base = dict(before) if wanted == before.get("kind") else {"kind": wanted}
    for key, filled_in in _FILLED_IN.items():
        if not same_expression(patch.get(key, before.get(key)), before.get(key)):
            base.pop(filled_in, None)
    base.update(patch)
    return {key: value for key, value in base.items() if value is not None}
