"""Structured logs: one JSON object a line on standard error, with a stable `event` and a sentence for people.

Whoever reads them never holds a process up: a line that standard error does not take is lost, and counted.
"""

import logging
import os
import select

import msgspec

from cronward.protocol.clock import Clock

Field = str | int | float | bool | None | list[str]

LOST = "log.lost"
"""Event of the line that says how many were lost before it."""

_LOGGER = logging.getLogger("cronward")
_STDERR = 2
_CHUNK_BYTES = select.PIPE_BUF
"""What a pipe that is ready takes whole (pipe(7)); so a write of it after a look does not block."""
_PATIENCE_MS = 20
"""How long a line that is begun may wait for the rest of it."""


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


class _StandardError(logging.Handler):
    """Writes to descriptor 2, after a look whether it takes something now.

    The descriptor stays as it is (O_NONBLOCK would be there for everybody who shares it, terminals included), so two
    processes that look at the same moment at a pipe with one free page may still meet: the second waits for a reader.
    """

    def __init__(self) -> None:
        super().__init__()
        self._poll = select.poll()
        self._poll.register(_STDERR, select.POLLOUT)
        self._lost = 0
        self._is_cut = False

    def emit(self, record: logging.LogRecord) -> None:
        if self._lost and self._takes(0):
            lost, self._lost = self._lost, 0
            said: dict[str, object] = {
                "msg": f"{lost} lines were lost because nobody read the log",
                "levelname": "WARNING",
            }
            self._write(self.format(logging.makeLogRecord(said | {"event": LOST, "fields": {"lost": lost}})))
        self._write(self.format(record))

    def _write(self, line: str) -> None:
        data = b"\n" * self._is_cut + line.encode() + b"\n"
        for begin in range(0, len(data), _CHUNK_BYTES):
            if not self._put(data[begin : begin + _CHUNK_BYTES], _PATIENCE_MS if begin else 0):
                self._lost += 1
                self._is_cut = begin > 0 or self._is_cut
                return
        self._is_cut = False

    def _put(self, chunk: bytes, patience_ms: int) -> bool:
        if not self._takes(patience_ms):
            return False
        try:
            os.write(_STDERR, chunk)
        except OSError:  # closed, or a full disk below it: there is nowhere left to say so
            return False
        return True

    def _takes(self, patience_ms: int) -> bool:
        return bool(self._poll.poll(patience_ms))


def setup(process: str, level: str, clock: Clock) -> None:
    """Makes this process log as `process` to standard error from `level` (debug, info, warning, error) on."""
    handler = _StandardError()
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
