"""`python -m cronward.launcher`: arguments, the lock, exit codes."""

import argparse
import ctypes
import errno
import os
import sys
from collections.abc import Callable, Sequence

import zmq

from cronward.launcher.service import Launcher
from cronward.launcher.spawner import Spawner, ZygoteSpawner
from cronward.protocol import config, exits, failpoints, locks, log, sockets
from cronward.protocol.clock import SystemClock
from cronward.protocol.errors import Code, ConfigError, StartupError
from cronward.protocol.launch import MESSAGE_MAX_BYTES, LauncherConfig
from cronward.protocol.notify import Notifier
from cronward.protocol.paths import Paths, resolve

PR_SET_CHILD_SUBREAPER = 36
LINGER_MS = 500
"""The last answers may take this long to leave."""


def main(argv: Sequence[str], make_spawner: Callable[[str], Spawner] = ZygoteSpawner) -> int:
    """Runs until it is told to end; returns the exit code. `make_spawner` takes the path of the `run` socket."""
    arguments = _arguments(argv)
    clock = SystemClock()
    log.setup("launcher", "info", clock)
    try:
        failpoints.arm(os.environ)
        path = config.config_path(os.environ, arguments.config)
        settings = config.load(path, os.environ, must_exist=config.is_named(os.environ, arguments.config))
        log.set_level(settings.log_level)
        paths = resolve(os.environ, arguments.state, arguments.runtime)
        lock_fd = _lock(paths)
        _keep_descriptors_from_executors()
        _become_subreaper()
    except ConfigError as error:
        log.error("launcher.config_invalid", error.message)
        return exits.CONFIG
    except StartupError as error:
        log.error("launcher.cannot_start", error.message, code=str(error.code))
        return error.exit_code
    notifier = Notifier(os.environ, arguments.ready_fd)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = sockets.dealer(context, str(paths.launch), MESSAGE_MAX_BYTES)
    try:
        spawner = make_spawner(str(paths.run))
        return Launcher(paths, lock_fd, _first_config(settings), socket, spawner, clock, notifier).run()
    except Exception:
        log.error("launcher.bug", "the launcher ends because of a bug; runs go on", exc_info=True)
        return exits.INTERNAL
    finally:
        context.destroy(LINGER_MS)  # with the monitor of the socket


class _Arguments(argparse.Namespace):
    state: str | None
    runtime: str | None
    config: str | None
    ready_fd: int | None


def _arguments(argv: Sequence[str]) -> _Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m cronward.launcher", description="Starts what the scheduler asks for."
    )
    parser.add_argument("--state", metavar="DIR", help="state directory")
    parser.add_argument("--runtime", metavar="DIR", help="directory of the sockets")
    parser.add_argument("--config", metavar="FILE", help="configuration file")
    parser.add_argument("--ready-fd", metavar="N", type=int, help="a newline is written to this descriptor when ready")
    return parser.parse_args(argv, _Arguments())


def _lock(paths: Paths) -> int:
    """Makes the directories and takes the launcher's lock, which this process then holds for life by the descriptor."""
    try:
        paths.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths.runs.mkdir(mode=0o700, exist_ok=True)
        return locks.acquire(paths.launcher_lock)
    except locks.Held as held:
        raise StartupError(
            Code.ALREADY_RUNNING, exits.ALREADY_RUNNING, f"another launcher is running: {held}"
        ) from None
    except OSError as error:
        message = f"the state directory {paths.state} cannot be used: {error}"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)  # space may come back by itself; else somebody has to act
        raise StartupError(Code.STATE_DIR_UNUSABLE, exits.STORAGE if full else exits.STATE_DIR, message) from None


def _keep_descriptors_from_executors() -> None:
    """Whatever this process inherited beyond the standard streams is its own."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2:
            try:
                os.set_inheritable(fd, False)
            except OSError:  # the descriptor of the listing itself
                continue


def _become_subreaper() -> None:
    """What a dead executor leaves becomes a child of this process, so that it is reaped."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise StartupError(Code.INTERNAL, exits.INTERNAL, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


def _first_config(settings: config.Config) -> LauncherConfig:
    """What holds until the scheduler has sent its own."""
    return LauncherConfig(
        version=0,
        ready=settings.executors.ready,
        executors_max=settings.executors.max,
        grace_ms=round(settings.command.grace_s * 1000),
        gateway_kind=settings.gateway.kind,
        gateway_url=settings.gateway.url,
        gateway_interval_ms=round(settings.gateway.interval_s * 1000),
        gateway_timeout_ms=round(settings.gateway.timeout_s * 1000),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
