"""Who a process is: pid, kernel start time and boot id together are never used twice."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

PID_MAX = 2**22
"""The kernel's own bound (proc_sys_kernel(5)). A number beyond it is no process, and no system call takes it."""


class ProcessIdentity(msgspec.Struct, frozen=True, array_like=True):
    """One process of one boot. `start_ticks` is field 22 of /proc/PID/stat (proc(5))."""

    pid: Annotated[int, Meta(ge=1, le=PID_MAX)]
    start_ticks: Annotated[int, Meta(ge=0, le=2**53)]
    boot_id: str


def boot_id() -> str:
    """The kernel's id of this boot, as 36 characters."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """Start time of `pid` in clock ticks since boot, or None when there is no such process or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def own_identity() -> ProcessIdentity:
    """The calling process."""
    pid = os.getpid()
    ticks = start_ticks(pid)
    if ticks is None:
        raise RuntimeError("/proc is not mounted: Cronward needs it to tell processes apart")
    return ProcessIdentity(pid, ticks, boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether exactly that process still runs. A zombie is dead; so is every process of another boot."""
    return identity.boot_id == boot_id() and start_ticks(identity.pid) == identity.start_ticks
