"""Waiting for descriptors and ZeroMQ sockets, each with the function that serves it."""

from collections.abc import Callable

import zmq

Source = int | zmq.Socket[bytes]
Serve = Callable[[], None]


class Loop:
    """A poller with callbacks. A callback does a bounded amount of work and never blocks."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._served: dict[Source, Serve] = {}

    def watch(self, source: Source, serve: Serve) -> None:
        """Calls `serve` in each turn in which `source` is readable, at end-of-file or broken."""
        self._served[source] = serve
        self._poller.register(source, zmq.POLLIN)

    def unwatch(self, source: Source) -> None:
        """Before a descriptor is closed."""
        del self._served[source]
        self._poller.unregister(source)

    def turn(self, timeout_ms: int | None) -> None:
        """Waits until something is ready (None: for ever), and serves it."""
        for source, _ in self._poller.poll(timeout_ms):
            # An earlier callback of this turn may have unwatched it.
            serve = self._served.get(source)
            if serve is not None:
                serve()
