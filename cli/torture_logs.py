"""What the daemons' logs say, over all their lives: notices that were sent, slots that met a run still live, bugs."""

from pathlib import Path

import msgspec

from cronward.protocol.failpoints import FailpointError

_NOTICE, _CONSUMED = b'"notice.sent"', b'"slot.consumed"'
_BUGS = (
    "message.failed",
    "request.failed",
    "run.impossible",
    "run.activation_failed",
    "job.due_failed",
    "scheduler.bug",
    "launcher.message_failed",
    "launcher.duty_failed",
    "launcher.bug",
    "executor.crashed",
)
"""Events that no crash explains, but for the error that a failpoint raised."""

_BUG_MARKS = tuple(f'"{event}"'.encode() for event in _BUGS)


class _NoticeSent(msgspec.Struct):
    runs: list[str]


class _SlotConsumed(msgspec.Struct):
    job: str
    slot_ms: int
    ts_ms: int


class _Line(msgspec.Struct):
    event: str
    message: str
    traceback: str = ""


class DaemonLogs:
    """`told` are the runs that notices named; `consumed` tells by job when a slot without a run of its own was decided
    on; `bugs` are messages that no crash explains. Each life has a file of its own."""

    def __init__(self) -> None:
        self.files: list[Path] = []
        self.told: set[str] = set()
        self.consumed: dict[str, dict[int, int]] = {}
        self.bugs: list[str] = []
        self._offsets: dict[Path, int] = {}

    def read(self) -> None:
        """Takes what is new."""
        for file in self.files:
            offset = self._offsets.get(file, 0)
            if file.stat().st_size > offset:
                with file.open("rb") as log:
                    log.seek(offset)
                    data = log.read()
                whole = data[: data.rfind(b"\n") + 1]
                self._offsets[file] = offset + len(whole)
                for line in whole.splitlines():
                    self._take(line)

    def _take(self, line: bytes) -> None:
        if _NOTICE in line:
            self.told.update(msgspec.json.decode(line, type=_NoticeSent).runs)
        elif _CONSUMED in line:
            slot = msgspec.json.decode(line, type=_SlotConsumed)
            self.consumed.setdefault(slot.job, {})[slot.slot_ms] = slot.ts_ms
        elif any(mark in line for mark in _BUG_MARKS):
            bug = msgspec.json.decode(line, type=_Line)
            cause = bug.traceback.strip().rpartition("\n")[2]
            if FailpointError.__name__ not in cause:
                self.bugs.append(f"{bug.event}: {bug.message} {cause}".strip())
