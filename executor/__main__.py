"""`python -m cronward.executor PAIR_FD RUN_SOCKET_PATH`: started by the launcher, in a session of its own."""

import gc
import os
import signal
import socket
import sys

import zmq

from cronward.executor import cgroup
from cronward.executor.command import Launchpad
from cronward.executor.process_tree import become_subreaper
from cronward.executor.reporter import Reporter
from cronward.executor.service import Service
from cronward.protocol import exits, failpoints, log
from cronward.protocol.clock import SystemClock
from cronward.protocol.errors import CronwardError
from cronward.protocol.identity import own_identity
from cronward.protocol.run import MESSAGE_MAX_BYTES
from cronward.protocol.sockets import dealer

_CAUGHT = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Handled so that they come through the wakeup pipe. Ctrl-C and a hangup of the launcher's terminal change nothing."""


def main(arguments: list[str]) -> int:
    """Returns an exit code of `exits`."""
    if len(arguments) != 2 or not arguments[0].isdecimal():
        print("usage: python -m cronward.executor PAIR_FD RUN_SOCKET_PATH", file=sys.stderr)
        return exits.USAGE
    clock = SystemClock()
    log.setup("executor", os.environ.get("CRONWARD_LOG_LEVEL", "info"), clock)
    try:
        failpoints.arm(os.environ)
        _serve(int(arguments[0]), arguments[1], clock)
    except CronwardError as error:
        log.error("executor.cannot_start", error.message)
        return exits.CONFIG
    except Exception:
        # A bug. Ending frees the lock of the run, and the launcher settles it.
        log.error("executor.crashed", "the executor ends because of an error of its own", exc_info=True)
        return exits.INTERNAL
    return exits.OK


def _serve(pair_fd: int, run_socket_path: str, clock: SystemClock) -> None:
    _close_inherited(keep=pair_fd)
    os.set_inheritable(pair_fd, False)
    # A job of the same user may delete the directory that the launcher was started in.
    os.chdir("/")
    become_subreaper()
    signals_fd = _catch_signals()
    identity = own_identity()
    cgroup.enter_own(identity)
    pair_socket = socket.socket(fileno=pair_fd)
    pair_socket.setblocking(False)
    launchpad = Launchpad(os.environb)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    reporter = Reporter(dealer(context, run_socket_path, MESSAGE_MAX_BYTES), clock, identity.pid)
    service = Service(pair_socket, signals_fd, reporter, launchpad, clock)
    # Everything so far lives for ever: the collector need not look at it again (nor first, for 10 ms).
    gc.freeze()
    service.serve(identity)
    reporter.close()
    context.term()


def _close_inherited(keep: int) -> None:
    """A descriptor that came by mistake, a lock above all, must not live as long as this process."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd != keep:
            try:
                os.close(fd)
            except OSError:
                # The descriptor of the listing itself.
                continue


def _catch_signals() -> int:
    """Makes signals readable from the returned descriptor, and lets none stay blocked."""
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in _CAUGHT:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return read


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
