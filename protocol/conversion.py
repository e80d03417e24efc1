"""Decoded JSON as our types, and what is told of JSON that does not fit: the field, the value and what is allowed."""

import re
from typing import TypeVar

import msgspec

from cronward.protocol.errors import InvalidRequest

T = TypeVar("T")

SHOWN_MAX = 80
_KINDS = {"schedule.kind": "at, every, cron", "payload.kind": "command"}
_ONE_OF = re.compile(r"Expected `str` matching regex '\^\((?P<names>[a-z_|]+)\)\$'")
_ABSENT = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_EXPECTED = re.compile(r"Expected (?P<allowed>.+?)(?:, got .*)?")


def convert(raw: object, kind: type[T], where: str = "") -> T:
    """`raw` (decoded JSON) as `kind`; `where` is the path to it. Raises InvalidRequest naming the field, the value and
    what is allowed."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        path = path.rstrip("`").lstrip(".")
        raise _refusal(_joined(where, path), problem, _found(raw, path)) from None


def shown(value: object) -> str:
    """A value as it stands in a message: quoted, and cut when it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"


def _refusal(field: str, problem: str, value: object) -> InvalidRequest:
    if match := _ABSENT.fullmatch(problem):
        return InvalidRequest(_joined(field, match["name"]), "is missing", allowed=_KINDS.get(field))
    if match := _UNKNOWN.fullmatch(problem):
        return InvalidRequest(_joined(field, match["name"]), f"unknown field `{match['name']}`")
    if value is None:
        return InvalidRequest(field, problem)
    text = shown(value)
    names = match["names"].replace("|", ", ") if (match := _ONE_OF.fullmatch(problem)) else _KINDS.get(field)
    if names is not None:
        return InvalidRequest(field, f"{text} is not one of {names}", value=text, allowed=names)
    match = _EXPECTED.fullmatch(problem)
    return InvalidRequest(field, f"{problem} (got {text})", value=text, allowed=match["allowed"] if match else None)


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _found(raw: object, path: str) -> object:
    """The value at a path such as `payload.argv[1]`; None for one that has parts of its own, or is not there."""
    value = raw
    for key, index in re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", path):
        if isinstance(value, dict) and key:
            value = value.get(key)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return None if isinstance(value, dict | list) else value
