"""Checks that need no running service: directories, configuration, locks, database, control groups, bytecode."""

import grp
import importlib.util
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

from cronward.cli.findings import Finding, Level
from cronward.cli.processes import check_command, holder
from cronward.cli.session import Session
from cronward.protocol import config, exits
from cronward.protocol.cgroup import own_cgroup
from cronward.protocol.errors import ConfigError
from cronward.protocol.paths import Paths

FREE_MIN_BYTES = 256 * 1024 * 1024
CHECK_TIMEOUT_S = 600
PACKAGES = ("protocol", "schedule", "scheduler", "launcher", "executor", "cli")


def check_installation(session: Session) -> list[Finding]:
    """Every offline check, in the order in which a start would meet the trouble."""
    paths = session.paths
    return [
        check_config(session),
        check_directory("state directory", paths.state),
        check_space(paths.state),
        check_directory("runtime directory", paths.runtime),
        check_status_directory(paths),
        check_lock("scheduler lock", paths.scheduler_lock),
        check_lock("launcher lock", paths.launcher_lock),
        *(check_socket(path) for path in (paths.control, paths.query, paths.launch, paths.run)),
        check_database(session),
        check_cgroup(own_cgroup()),
        check_bytecode(),
    ]


def check_config(session: Session) -> Finding:
    path = config.config_path(os.environ, session.options.config)
    try:
        config.load(path, os.environ, must_exist=config.is_named(os.environ, session.options.config))
    except ConfigError as error:
        return Finding("configuration", Level.FAIL, error.message, "`cronward config check` shows every key")
    known = "" if path.exists() else " (does not exist: defaults)"
    return Finding("configuration", Level.OK, f"{path}{known}")


def check_directory(name: str, path: Path) -> Finding:
    """It exists, belongs to this user, is closed to others and writable."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return Finding(name, Level.WARN, f"{path} does not exist", "the scheduler makes it at its first start")
    except OSError as error:
        return Finding(name, Level.FAIL, f"{path}: {error.strerror}", "run this as the user of the service")
    if not stat.S_ISDIR(found.st_mode):
        return Finding(name, Level.FAIL, f"{path} is no directory")
    if not os.access(path, os.W_OK | os.X_OK):
        return Finding(name, Level.FAIL, f"{path} is not writable", "run this as the user of the service")
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        return Finding(name, Level.WARN, f"{path} is open to others (mode {mode:o})", f"chmod 700 {path}")
    return Finding(name, Level.OK, str(path))


def check_space(path: Path) -> Finding:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free // 1024 // 1024} MiB free"
    if free < FREE_MIN_BYTES:
        return Finding("disk space", Level.WARN, text, "with a full disk nothing new is started")
    return Finding("disk space", Level.OK, text)


def check_status_directory(paths: Paths) -> Finding:
    """Whether others than the service's user may follow it."""
    name = "status group"
    if not paths.status.is_dir():
        return Finding(name, Level.WARN, f"{paths.status} does not exist", "the scheduler makes it when it starts")
    group_id = paths.status.stat().st_gid
    try:
        group = grp.getgrgid(group_id).gr_name
    except KeyError:
        group = str(group_id)
    return Finding(name, Level.OK, f"members of {group} may follow the service")


def check_lock(name: str, path: Path) -> Finding:
    identity = holder(path)
    if identity is None:
        return Finding(name, Level.OK, "free: nobody runs here")
    return Finding(name, Level.OK, f"held by process {identity.pid}")


def check_socket(path: Path) -> Finding:
    """Somebody listens, and this user may connect."""
    name = f"{path.name} socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except FileNotFoundError:
            return Finding(name, Level.WARN, f"{path} does not exist", "no scheduler runs here")
        except ConnectionRefusedError:
            return Finding(
                name, Level.WARN, f"{path} was left by a scheduler that has ended", "the next one replaces it"
            )
        except OSError as error:
            advice = "run this as the user of the service" if isinstance(error, PermissionError) else ""
            return Finding(name, Level.FAIL, f"{path}: {error.strerror or error}", advice)
    return Finding(name, Level.OK, f"{path} accepts")


def check_database(session: Session) -> Finding:
    """Its integrity; the running scheduler's database belongs to it alone."""
    name, paths = "database", session.paths
    if holder(paths.scheduler_lock) is not None:
        return Finding(name, Level.OK, f"{paths.database}, in use; `cronward backup FILE` checks a copy")
    if not paths.database.exists():
        return Finding(
            name, Level.WARN, f"{paths.database} does not exist", "the scheduler makes it at its first start"
        )
    command = check_command(session.options)
    done = subprocess.run(command, capture_output=True, timeout=CHECK_TIMEOUT_S, check=False)
    if done.returncode == 0:
        return Finding(name, Level.OK, f"{paths.database} is sound")
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    advice = "`cronward restore FILE` puts a backup in its place"
    if done.returncode != exits.DATABASE:  # not damaged: in use although its lock is free, or the disk fails
        advice = "see the message; the database itself is not known to be damaged"
    return Finding(name, Level.FAIL, f"{paths.database}: {said}", advice)


def check_cgroup(group: Path | None) -> Finding:
    """Where control groups can be made, a run's leftovers are found and ended without a doubt."""
    name = "control groups"
    without = "jobs are found by session and descent instead (systemd: Delegate=yes)"
    if group is None:
        return Finding(name, Level.WARN, "there is no cgroup2 here", without)
    if not os.access(group, os.W_OK) or not os.access(group / "cgroup.procs", os.W_OK):
        return Finding(name, Level.WARN, f"{group}, that of this terminal, is not writable", without)
    return Finding(name, Level.OK, f"{group} is writable")


def check_bytecode() -> Finding:
    """Sources that have to be compiled at each start make every process start twice as slowly."""
    missing = [source for package in PACKAGES for source in _sources(package) if not _is_compiled(source)]
    if missing:
        folders = " ".join(sorted({str(source.parent) for source in missing}))
        text = f"{len(missing)} modules are not compiled"
        return Finding("bytecode", Level.WARN, text, f"python -m compileall -q {folders}")
    return Finding("bytecode", Level.OK, "all modules are compiled")


def _sources(package: str) -> list[Path]:
    """Found without importing the package."""
    spec = importlib.util.find_spec(f"cronward.{package}")
    folders = (spec.submodule_search_locations if spec else None) or []
    return [source for folder in folders for source in Path(folder).glob("*.py")]


def _is_compiled(source: Path) -> bool:
    compiled = Path(importlib.util.cache_from_source(str(source)))
    return compiled.exists() and compiled.stat().st_mtime >= source.stat().st_mtime
