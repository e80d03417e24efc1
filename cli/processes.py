"""The daemons' command lines, and who runs them now: by locks and process ids, without importing them."""

import sys
from pathlib import Path

import msgspec

from cronward.cli.main import Options
from cronward.protocol.identity import ProcessIdentity, is_alive

SCHEDULER = "scheduler"
LAUNCHER = "launcher"


def directory_flags(options: Options, *, with_config: bool = True) -> list[str]:
    """The global options as the daemons take them."""
    flags = [("--state", options.state), ("--runtime", options.runtime)]
    flags += [("--config", options.config)] if with_config else []
    return [word for flag, value in flags if value for word in (flag, value)]


def serve_command(process: str, options: Options) -> list[str]:
    """Starts a daemon in the foreground."""
    words = [sys.executable, "-m", f"cronward.{process}"]
    return [*words, *(["serve"] if process == SCHEDULER else []), *directory_flags(options)]


def check_command(options: Options, file: Path | None = None) -> list[str]:
    """Checks the live database, offline, or a backup file."""
    words = [sys.executable, "-m", "cronward.scheduler", "check"]
    return [*words, *([str(file)] if file else directory_flags(options, with_config=False))]


def restore_command(options: Options, file: Path) -> list[str]:
    state = ["--state", options.state] if options.state else []
    return [sys.executable, "-m", "cronward.scheduler", "restore", str(file), *state]


def holder(lock: Path) -> ProcessIdentity | None:
    """The live process that wrote itself into a lock file, which it holds as long as it lives. The lock is not tried:
    that would make it look held to somebody else."""
    try:
        identity = msgspec.json.decode(lock.read_bytes(), type=ProcessIdentity)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
    return identity if is_alive(identity) else None
