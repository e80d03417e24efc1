"""The processes of a scratch installation as the kernel shows them: which there are, and of what kind."""

import os
import signal
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cronward.cli.torture_windows import Kind
from cronward.protocol import rundir

_EXECUTOR, _ZYGOTE = " cronward.executor", " cronward.executor.zygote"


class Process(msgspec.Struct, frozen=True):
    """A live process. `start_ticks` and `pid` together are never used twice within a boot."""

    pid: int
    parent: int
    start_ticks: int
    threads: int
    arguments: str


def belonging_to(root: Path) -> list[Process]:
    """Every process with `root` in its environment, and what descends from one; zombies are dead.

    Daemons and executors have it in CRONWARD_STATE_DIR, tasks in a variable that their job gives them.
    """
    marker = os.fsencode(root)
    everybody: dict[int, Process] = {}
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            process = _read(int(name))
            environ = Path(f"/proc/{name}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # gone, or not ours to look at
            continue
        if process is not None:
            everybody[process.pid] = process
            if marker in environ:
                found.add(process.pid)
    while added := {pid for pid, process in everybody.items() if process.parent in found} - found:
        found |= added
    return [everybody[pid] for pid in sorted(found)]


def _read(pid: int) -> Process | None:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return Process(pid, int(fields[1]), int(fields[19]), int(fields[17]), arguments)


def kinds(processes: Iterable[Process], scheduler: int | None, launcher: int | None) -> dict[int, Kind]:
    """The kind of each process by its pid, given the pids of the daemons.

    A zygote and what it forked have the same command line, but only the zygote has a single thread; the oldest one is
    it, since an executor that was forked just now has no second thread yet. What descends from either is a task, even
    if it has not begun its own program yet.
    """
    found: dict[int, Kind] = {}
    single: list[Process] = []
    everybody = list(processes)
    executors = {process.pid for process in everybody if _EXECUTOR in process.arguments}
    for process in everybody:
        if process.pid == scheduler:
            found[process.pid] = Kind.SCHEDULER
        elif process.pid == launcher:
            found[process.pid] = Kind.LAUNCHER
        elif process.pid in executors and process.parent not in executors:
            found[process.pid] = Kind.EXECUTOR
            if process.threads == 1 and _ZYGOTE in process.arguments:
                single.append(process)
        else:
            found[process.pid] = Kind.TASK
    if single:
        found[min(single, key=lambda process: process.start_ticks).pid] = Kind.ZYGOTE
    return found


def holds_run(pid: int, runs: Path) -> bool:
    """Whether the process has the lock of a run below `runs` open, which is to have the run."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except (FileNotFoundError, ProcessLookupError):
        return False
    for descriptor in descriptors:
        try:
            target = Path(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except (FileNotFoundError, ProcessLookupError):  # closed, or gone
            continue
        if target.name == rundir.LOCK and runs in target.parents:
            return True
    return False


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """A signal to each that still lives."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def state(pid: int) -> str:
    """R, S, D, T, Z … of proc(5); empty if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]
