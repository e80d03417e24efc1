"""Readiness and liveness for a supervisor: sd_notify(3), and a plain descriptor as s6 knows it."""

import contextlib
import os
import socket
from collections.abc import Mapping

_DATAGRAM = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK


class Notifier:
    """Speaks to the supervisor named by NOTIFY_SOCKET, and once to `ready_fd`; silent if there is neither."""

    def __init__(self, environ: Mapping[str, str], ready_fd: int | None = None) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._ready_fd = ready_fd
        usec = environ.get("WATCHDOG_USEC", "")
        mine = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        self.watchdog_ms: int | None = int(usec) // 2000 if usec.isdigit() and mine else None
        """How often to send WATCHDOG=1, half of what the supervisor allows; None if it does not watch."""

    def send(self, *lines: str) -> None:
        """Sends e.g. `READY=1`. A supervisor that does not listen is no reason to fail: the message is dropped."""
        if self._address:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, _DATAGRAM) as connection:
                connection.sendto("\n".join(lines).encode(), self._address)

    def ready(self, status: str) -> None:
        self.send("READY=1", f"STATUS={status}")
        if self._ready_fd is not None:
            with contextlib.suppress(OSError):
                os.write(self._ready_fd, b"\n")
                os.close(self._ready_fd)
            self._ready_fd = None
