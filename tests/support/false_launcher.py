"""The test in place of the launcher: it has the lock, and with it the scheduler's ear."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import zmq

from cronward.protocol import launch, locks, sockets
from tests.support.instance import Instance


@contextmanager
def acting_as_launcher(instance: Instance) -> Iterator[zmq.Socket[bytes]]:
    """Ends the launcher (runs go on), takes its place on the `launch` socket, and at the end starts another one."""
    instance.launcher.terminate()
    lock_fd = locks.acquire(instance.paths.launcher_lock)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        socket = sockets.dealer(context, str(instance.paths.launch), launch.MESSAGE_MAX_BYTES)
        assert socket.poll(10_000, zmq.POLLOUT)
        yield socket
    finally:
        context.destroy(linger=1000)
        os.close(lock_fd)
    instance.start_launcher()
