"""What the loop waits for: ZeroMQ sockets, and any number of kernel descriptors."""

import select
from collections.abc import Callable

import zmq


class Readiness:
    """One wait for everything. Descriptors live in an epoll that the ZeroMQ poller watches as one: a turn's cost does
    not grow with the number of executors."""

    def __init__(self, *sockets: zmq.Socket[bytes]) -> None:
        self._epoll = select.epoll()
        self._poller = zmq.Poller()
        for socket in sockets:
            self._poller.register(socket, zmq.POLLIN)
        self._poller.register(self._epoll.fileno(), zmq.POLLIN)
        self._callbacks: dict[int, Callable[[], None]] = {}

    def watch(self, fd: int, callback: Callable[[], None], *, writable: bool = False) -> None:
        """Calls back whenever `fd` is readable (or writable), broken or at its end, until `forget`."""
        self._epoll.register(fd, select.EPOLLOUT if writable else select.EPOLLIN)
        self._callbacks[fd] = callback

    def forget(self, fd: int) -> None:
        """Stops watching; must come before `fd` is closed."""
        self._epoll.unregister(fd)
        del self._callbacks[fd]

    def wait(self, timeout_ms: int) -> None:
        """Returns after `timeout_ms` or as soon as something is ready, having called back for every descriptor."""
        self._poller.poll(timeout_ms)
        for fd, _ in self._epoll.poll(0):
            callback = self._callbacks.get(fd)
            if callback is not None:  # an earlier callback of this round may have closed it
                callback()
