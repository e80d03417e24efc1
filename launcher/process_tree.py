"""Finding what is left of a run whose executor is dead. Pure functions over one look at /proc."""

import os
from collections.abc import Collection
from pathlib import Path

import msgspec

from cronward.protocol.identity import ProcessIdentity

RUN_ID = b"CRONWARD_RUN_ID="


class Process(msgspec.Struct, frozen=True):
    """A live process; zombies are none. `run` is CRONWARD_RUN_ID of its environment, if that can be read."""

    pid: int
    parent: int
    session: int
    start_ticks: int
    run: str | None


def snapshot() -> list[Process]:
    """All processes but kernel threads and this one."""
    own = os.getpid()
    names = (name for name in os.listdir("/proc") if name.isdigit() and int(name) != own)
    return [process for name in names if (process := _look(int(name))) is not None]


def left_of(
    run: str, executor: ProcessIdentity | None, group: Collection[int], processes: list[Process]
) -> list[Process]:
    """Processes of `run`, whose `executor` is dead: those in its control `group` or session, those that carry the run's
    id, and from there everything in the same sessions and every descendant."""
    reused = executor is not None and any(process.pid == executor.pid for process in processes)
    own_session = None if executor is None or reused else executor.pid
    found = {p.pid: p for p in processes if p.run == run or p.session == own_session or p.pid in group}
    strangers = {os.getsid(0), 0, 1}
    while True:
        sessions = {process.session for process in found.values()} - strangers
        added = [
            process
            for process in processes
            if process.pid not in found and (process.parent in found or process.session in sessions)
        ]
        if not added:
            return list(found.values())
        found |= {process.pid: process for process in added}


def _look(pid: int) -> Process | None:
    directory = Path(f"/proc/{pid}")
    try:
        fields = (directory / "stat").read_bytes().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in (b"Z", b"X") or fields[3] == b"0":
        return None
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), _run_id(directory))


def _run_id(directory: Path) -> str | None:
    try:
        environ = (directory / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    for entry in environ.split(b"\0"):
        if entry.startswith(RUN_ID):
            return entry[len(RUN_ID) :].decode(errors="replace")
    return None
