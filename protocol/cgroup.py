"""Where control groups (cgroup2) of executors are. The executor makes and enters its own; its launcher removes it.

Executors of one launcher get sibling groups `cronward-x-<pid>-<start ticks>` below the launcher's own group, so
whatever outlives a killed executor is found, and ended at once, through its group.
"""

from pathlib import Path

from cronward.protocol.identity import ProcessIdentity

EXECUTOR_PREFIX = "cronward-x-"

_MOUNTINFO = Path("/proc/self/mountinfo")
_CGROUP = Path("/proc/self/cgroup")


def own_cgroup() -> Path | None:
    """The cgroup2 directory of the calling process, or None where cgroup2 is not mounted or not visible."""
    mounted = _mount(_MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape"))
    inside = _membership(_CGROUP.read_text(encoding="utf-8", errors="surrogateescape"))
    if mounted is None or inside is None:
        return None
    root, mount_point = mounted
    if root != "/" and not (inside + "/").startswith(root + "/"):
        return None
    directory = mount_point / inside.removeprefix(root).lstrip("/")
    return directory if directory.is_dir() else None


def executor_cgroup(identity: ProcessIdentity, parent: Path) -> Path:
    """The directory of the group that the executor `identity` makes below `parent`, its launcher's own group."""
    return parent / f"{EXECUTOR_PREFIX}{identity.pid}-{identity.start_ticks}"


def _mount(mountinfo: str) -> tuple[str, Path] | None:
    """(root inside the hierarchy, mount point) of the first cgroup2 mount (proc_pid_mountinfo(5))."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            fields = before.split(" ")
            return _unescaped(fields[3]), Path(_unescaped(fields[4]))
    return None


def _membership(cgroup: str) -> str | None:
    """Path within the cgroup2 hierarchy (cgroups(7)): the line with hierarchy 0 and no controllers."""
    for line in cgroup.splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def _unescaped(field: str) -> str:
    for code, char in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        field = field.replace(code, char)
    return field
