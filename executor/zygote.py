"""`python -m cronward.executor.zygote FD RUN_SOCKET_PATH`: has everything imported and forks executors on request.

Each packet on FD carries one end of a pair; the executor that gets it is an orphan at once, so that the launcher, a
subreaper, becomes its parent. One thread, no ZeroMQ context, nothing opened: a fork of this is a fresh executor, some
twenty times sooner than an exec. End-of-file is the order to exit; the executors stay.
"""

import gc
import os
import socket
import sys

from cronward.executor.__main__ import main as executor_main
from cronward.protocol import exits


def main(arguments: list[str]) -> int:
    requests = socket.socket(fileno=int(arguments[0]))
    gc.collect()
    gc.freeze()  # the collector of a fork would otherwise copy every page
    while True:
        packet, fds, _, _ = socket.recv_fds(requests, 1, 1)
        if not packet:
            return exits.OK
        _fork_twice(fds[0], arguments[1])
        os.close(fds[0])


def _fork_twice(pair_fd: int, run_socket_path: str) -> None:
    """The process in between ends at once and is waited for: what it forked is an orphan."""
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    try:
        if os.fork() == 0:
            os.setsid()
            os._exit(executor_main([str(pair_fd), run_socket_path]))
        os._exit(exits.OK)
    finally:
        os._exit(exits.INTERNAL)  # a fork that failed must not go on as a second zygote


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
