"""Log lines of several processes on one terminal, without ever making a process wait for the terminal."""

import contextlib
import os
import queue
import sys
import threading
from typing import TextIO

import msgspec

from cronward.cli.text import safe, use_colour
from cronward.cli.times import local, zone_mark
from cronward.protocol.clock import Clock

_QUEUE_MAX = 10_000
_GOODBYE_S = 1
_FRAME = frozenset({"ts_ms", "level", "process", "pid", "event", "message", "traceback"})
_LEVEL_COLOURS = {"warning": "\x1b[33m", "error": "\x1b[31m", "debug": "\x1b[2m"}
_FIELD_MAX = 60


class LogLine(msgspec.Struct):
    """The frame of a line that protocol/log.py wrote."""

    ts_ms: int
    level: str
    process: str
    message: str
    traceback: str | None = None


class Console:
    """Writes lines to `stream` from a thread of its own. A terminal that is held (Ctrl-S) or slow costs lines, which
    are counted, and never stops whoever writes them."""

    def __init__(self, clock: Clock, *, as_json: bool, stream: TextIO = sys.stderr) -> None:
        self._clock = clock
        self._as_json = as_json
        self._stream = stream
        self._colour = use_colour(os.environ, is_terminal=stream.isatty())
        self._lines: queue.Queue[str | None] = queue.Queue(_QUEUE_MAX)
        self._lost = 0
        self._thread = threading.Thread(target=self._write, name="console", daemon=True)
        self._thread.start()

    def say(self, event: str, message: str, *, level: str = "info") -> None:
        """A line of the supervisor itself."""
        fields = {
            "ts_ms": self._clock.wall_ms(),
            "level": level,
            "process": "up",
            "pid": os.getpid(),
            "event": event,
            "message": message,
        }
        self.pass_on(msgspec.json.encode(fields))

    def pass_on(self, line: bytes) -> None:
        """A line of a daemon: as it is with --json, else for people."""
        text = line.decode("utf-8", "replace")
        shown = text if self._as_json else for_people(text, colour=self._colour)
        try:
            self._lines.put_nowait(shown)
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Waits a moment for what is left."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=_GOODBYE_S)
        self._thread.join(_GOODBYE_S)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            lost, self._lost = self._lost, 0
            try:
                if lost:
                    self._stream.write(f"… {lost} lines were lost because the terminal did not take them\n")
                self._stream.write(line + "\n")
                self._stream.flush()
            except OSError:
                return  # the terminal is gone; the service goes on


def for_people(line: str, *, colour: bool) -> str:
    """`03:43:32 CET scheduler  the scheduler is ready  version=0.1.0`; what is no log line is shown as it is."""
    try:
        frame = msgspec.json.decode(line, type=LogLine)
        fields = msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return safe(line, keep="\t")
    when = local(frame.ts_ms)
    rest = " ".join(f"{key}={_short(value)}" for key, value in fields.items() if key not in _FRAME)
    paint = _LEVEL_COLOURS.get(frame.level, "") if colour else ""
    message = f"{paint}{safe(frame.message)}\x1b[0m" if paint else safe(frame.message)
    text = f"{when:%H:%M:%S} {zone_mark(when)} {safe(frame.process):<9} {message}"
    if rest:
        text += f"  \x1b[2m{rest}\x1b[0m" if colour else f"  {rest}"
    return f"{text}\n{safe(frame.traceback, keep=chr(10))}" if frame.traceback else text


def _short(value: object) -> str:
    text = safe(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    return text if len(text) <= _FIELD_MAX else text[: _FIELD_MAX - 1] + "…"
