"""Whether the agent gateway takes work: asked again and again without ever blocking the loop.

`GET /startupz`: 200 is up; 503 says starting or draining; no answer within the deadline is down. A server without
that path (404) is some other one that answers: up.
"""

import contextlib
import errno
import ipaddress
import socket
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from cronward.launcher.readiness import Readiness
from cronward.protocol import log
from cronward.protocol.clock import Clock
from cronward.protocol.launch import GatewayState, LauncherConfig

RESPONSE_MAX_BYTES = 16 * 1024
IDLE_MS = 1000


class Probe(Protocol):
    """`state` is what was seen last."""

    state: GatewayState

    def tend(self, now_ms: int) -> int:
        """Duty."""
        ...

    def close(self) -> None: ...


class NoGateway:
    """None is configured."""

    def __init__(self) -> None:
        self.state = GatewayState.NONE

    def tend(self, now_ms: int) -> int:
        return IDLE_MS

    def close(self) -> None:
        pass


class HttpGateway:
    """One request at a time, each with a deadline for all of it."""

    def __init__(self, config: LauncherConfig, readiness: Readiness, clock: Clock) -> None:
        self.state = GatewayState.DOWN
        self._interval_ms = config.gateway_interval_ms
        self._timeout_ms = config.gateway_timeout_ms
        self._readiness = readiness
        self._clock = clock
        self._address = address(config.gateway_url)
        self._next_ms = 0
        self._deadline_ms = 0
        self._socket: socket.socket | None = None
        self._received = b""
        if self._address is None:
            log.error(
                "gateway.bad_url", f"{config.gateway_url!r} is not http://ADDRESS[:PORT]; names are not looked up"
            )

    def tend(self, now_ms: int) -> int:
        if self._socket is not None and now_ms >= self._deadline_ms:
            self._conclude(GatewayState.DOWN)
        if self._socket is None and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            self._deadline_ms = now_ms + self._timeout_ms
            self._begin()
        return max(1, (self._next_ms if self._socket is None else self._deadline_ms) - now_ms)

    def close(self) -> None:
        """Gives up the request in flight."""
        if self._socket is not None:
            self._readiness.forget(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _begin(self) -> None:
        if self._address is None:
            return
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        try:
            connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            log.warning("gateway.not_probed", f"the gateway cannot be asked now: {error}")
            return
        self._socket, self._received = connection, b""
        number = connection.connect_ex(self._address)
        self._readiness.watch(connection.fileno(), self._connected, writable=True)
        if number not in (0, errno.EINPROGRESS):
            self._conclude(GatewayState.DOWN)

    def _connected(self) -> None:
        if self._socket is None or self._address is None:
            return
        host = f"[{self._address[0]}]" if ":" in self._address[0] else self._address[0]
        request = f"GET /startupz HTTP/1.0\r\nHost: {host}:{self._address[1]}\r\nAccept: application/json\r\n\r\n"
        try:
            self._socket.sendall(request.encode())
        except OSError:
            self._conclude(GatewayState.DOWN)
            return
        self._readiness.forget(self._socket.fileno())
        self._readiness.watch(self._socket.fileno(), self._readable)

    def _readable(self) -> None:
        if self._socket is None:
            return
        try:
            chunk = self._socket.recv(RESPONSE_MAX_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._conclude(GatewayState.DOWN)
            return
        self._received += chunk
        if not chunk or is_complete(self._received):
            self._conclude(classify(self._received))

    def _conclude(self, state: GatewayState) -> None:
        self.close()
        if state is not self.state:
            log.info("gateway.state", f"the gateway is {state.value}, it was {self.state.value}")
        self.state = state


def make_probe(config: LauncherConfig, readiness: Readiness, clock: Clock) -> Probe:
    return HttpGateway(config, readiness, clock) if config.gateway_kind == "http" else NoGateway()


def same_gateway(one: LauncherConfig, other: LauncherConfig) -> bool:
    """Whether a probe made for one serves the other, so that what it saw still counts."""
    return _settings(one) == _settings(other)


def _settings(config: LauncherConfig) -> tuple[str, str, int, int]:
    return config.gateway_kind, config.gateway_url, config.gateway_interval_ms, config.gateway_timeout_ms


def address(url: str) -> tuple[str, int] | None:
    """Address and port of an http URL, or None. `localhost` is 127.0.0.1; other names would have to be looked up, which
    can block."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        if parts.scheme == "http":
            return str(ipaddress.ip_address(host)), parts.port or 80
    return None


def is_complete(response: bytes) -> bool:
    """Whether all of the body is there, or more than we want to read."""
    head, separator, body = response.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and separator and value.strip().isdigit():
            return len(body) >= int(value)
    return len(response) >= RESPONSE_MAX_BYTES


def classify(response: bytes) -> GatewayState:
    """State of a gateway that gave this answer."""
    head, _, body = response.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    status = words[1] if len(words) > 1 and words[0].startswith(b"HTTP/") else b""
    if status in (b"200", b"404"):
        return GatewayState.UP
    if status == b"503":
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            said = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get("status", msgspec.Raw())
            if bytes(said) in (b'"starting"', b'"draining"'):
                return GatewayState(bytes(said).strip(b'"').decode())
    return GatewayState.DOWN
