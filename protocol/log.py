"""Structured logs: one JSON object a line on standard error, with a stable `event` and a sentence for people."""

import logging
import sys

import msgspec

from cronward.protocol.clock import Clock

Field = str | int | float | bool | None | list[str]

_LOGGER = logging.getLogger("cronward")


class _JsonLines(logging.Formatter):
    def __init__(self, process: str, clock: Clock) -> None:
        super().__init__()
        self._process = process
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Field] = {
            "ts_ms": self._clock.wall_ms(),
            "level": record.levelname.lower(),
            "process": self._process,
            "pid": record.process,
            "event": getattr(record, "event", "log"),
            "message": record.getMessage(),
        }
        fields.update(getattr(record, "fields", {}))
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields).decode()


def setup(process: str, level: str, clock: Clock) -> None:
    """Makes this process log as `process` to standard error from `level` (debug, info, warning, error) on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines(process, clock))
    _LOGGER.handlers[:] = [handler]
    _LOGGER.propagate = False
    set_level(level)


def set_level(level: str) -> None:
    _LOGGER.setLevel(level.upper())


def debug(event: str, message: str, **fields: Field) -> None:
    _emit(logging.DEBUG, event, message, fields)


def info(event: str, message: str, **fields: Field) -> None:
    _emit(logging.INFO, event, message, fields)


def warning(event: str, message: str, **fields: Field) -> None:
    _emit(logging.WARNING, event, message, fields)


def error(event: str, message: str, *, exc_info: bool = False, **fields: Field) -> None:
    """With `exc_info` the traceback of the exception in flight is part of the line."""
    _emit(logging.ERROR, event, message, fields, exc_info=exc_info)


def _emit(level: int, event: str, message: str, fields: dict[str, Field], *, exc_info: bool = False) -> None:
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, "%s", message, exc_info=exc_info, extra={"event": event, "fields": fields})
