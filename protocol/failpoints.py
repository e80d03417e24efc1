"""Named points where a process can be made to fail, for crash tests and drills. Free when off.

Armed by the environment of the process:

    CRONWARD_FAILPOINTS_ENABLE=yes
    CRONWARD_FAILPOINTS="launcher.after_publish=crash;executor.during_task=delay:500@3"
    CRONWARD_FAILPOINTS_DIR=/tmp/hits        (optional)

An action is `crash` (SIGKILL to itself), `stop` (SIGSTOP to itself), `delay:MILLISECONDS` or `error` (raises
FailpointError); `@N` acts at the Nth passage only, otherwise at each. With a directory, acting first writes
`<dir>/<name>` holding the pid, and a point whose file exists does not act again: a restarted process passes.
Without ENABLE=yes an armed point is refused at start: a variable that was left behind must not kill a service.
"""

import enum
import os
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cronward.protocol.errors import ConfigError

WINDOWS: dict[str, str] = {
    "scheduler.before_request_commit": "1",
    "scheduler.after_request_commit": "2",
    "scheduler.after_active_commit": "3",
    "launcher.after_receive": "4",
    "launcher.after_publish": "5",
    "launcher.after_hand_over": "5",
    "executor.before_start": "6",
    "executor.during_task": "7",
    "executor.after_task": "8",
    "executor.after_outcome_saved": "9",
    "executor.after_outcome_sent": "10",
    "scheduler.before_outcome_commit": "11",
    "scheduler.after_outcome_commit": "12",
    "launcher.before_exited": "12",
    "executor.after_ack": "12",
    "executor.before_free": "12",
    "scheduler.before_notify": "14",
}
"""Every point, with its row in the table of crash windows."""


class FailpointError(Exception):
    """Raised on purpose at a point armed with `error`."""


class Action(enum.StrEnum):
    CRASH = "crash"
    STOP = "stop"
    DELAY = "delay"
    ERROR = "error"


class Armed(msgspec.Struct):
    """One armed point and how often it was passed."""

    action: Action
    delay_ms: int
    nth: int | None
    passed: int = 0


_SPEC = re.compile(r"(?P<action>crash|stop|error|delay:(?P<ms>\d{1,7}))(?:@(?P<nth>[1-9]\d{0,8}))?")
_armed: dict[str, Armed] = {}
_directory: Path | None = None


def parse(spec: str) -> dict[str, Armed]:
    """Reads `name=action;name=action`. Raises ConfigError that names the part, and what is allowed."""
    armed: dict[str, Armed] = {}
    for part in filter(None, (text.strip() for text in spec.split(";"))):
        name, _, action = part.partition("=")
        if name not in WINDOWS:
            raise ConfigError(f"failpoint {name!r} does not exist; `cronward failpoints` lists them")
        match = _SPEC.fullmatch(action)
        if match is None:
            raise ConfigError(f"failpoint {name}: {action!r} is not crash, stop, error or delay:MS, with @N at most")
        kind = Action(action.split(":")[0].split("@")[0])
        armed[name] = Armed(kind, int(match["ms"] or 0), int(match["nth"]) if match["nth"] else None)
    return armed


def arm(environ: Mapping[str, str]) -> list[str]:
    """Arms what the environment names and returns the names. Raises ConfigError for a bad or a forbidden one."""
    global _directory
    spec = environ.get("CRONWARD_FAILPOINTS", "")
    armed = parse(spec)
    if armed and environ.get("CRONWARD_FAILPOINTS_ENABLE") != "yes":
        raise ConfigError("CRONWARD_FAILPOINTS is set without CRONWARD_FAILPOINTS_ENABLE=yes; refusing to start")
    _armed.clear()
    _armed.update(armed)
    directory = environ.get("CRONWARD_FAILPOINTS_DIR")
    _directory = Path(directory) if directory else None
    return sorted(armed)


def hit(name: str) -> None:
    """Passes the point `name`."""
    if _armed:
        _pass(name)


def _pass(name: str) -> None:
    point = _armed.get(name)
    if point is None:
        return
    point.passed += 1
    if point.nth is not None and point.passed != point.nth:
        return
    if not _claim(name):
        return
    match point.action:
        case Action.CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        case Action.STOP:
            os.kill(os.getpid(), signal.SIGSTOP)
        case Action.DELAY:
            time.sleep(point.delay_ms / 1000)  # noqa: TID251 - this is the failure that was asked for
        case Action.ERROR:
            raise FailpointError(f"failpoint {name}")


def _claim(name: str) -> bool:
    """Leaves the mark of this hit; False if some process left it before."""
    if _directory is None:
        return True
    try:
        fd = os.open(_directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return False
    os.write(fd, str(os.getpid()).encode())
    os.close(fd)
    return True
