"""The gateway's probe against real servers, in the loop that the launcher uses."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
import zmq

from cronward.launcher.gateway import HttpGateway
from cronward.launcher.readiness import Readiness
from cronward.protocol.clock import SystemClock
from cronward.protocol.launch import GatewayState, LauncherConfig

CONFIG = LauncherConfig(1, 1, 1, 1, "http", "", gateway_interval_ms=100_000, gateway_timeout_ms=300)
CLOCK = SystemClock()


@contextmanager
def server(*pieces: bytes, pause_s: float = 0) -> Iterator[str]:
    """Answers one request with `pieces`, each after a pause; yields its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(4096)
            try:
                for piece in pieces:
                    done.wait(pause_s)
                    connection.sendall(piece)
            except OSError:
                return  # the probe gave up

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        done.set()
        thread.join(10)
        listening.close()


def probe(url: str) -> tuple[GatewayState, int, int]:
    """State after one request, the ms that it took, and the longest that the loop was held up."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    idle = context.socket(zmq.PULL)
    readiness = Readiness(idle)
    gateway = HttpGateway(msgspec.structs.replace(CONFIG, gateway_url=url), readiness, CLOCK)
    begun = CLOCK.mono_ms()
    wait_ms = gateway.tend(begun)
    held_ms = CLOCK.mono_ms() - begun
    while wait_ms < 10_000:
        readiness.wait(min(wait_ms, 50))
        now = CLOCK.mono_ms()
        wait_ms = gateway.tend(now)
        held_ms = max(held_ms, CLOCK.mono_ms() - now)
    gateway.close()
    idle.close(0)
    context.term()
    return gateway.state, CLOCK.mono_ms() - begun, held_ms


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (http("200 OK", '{"ok":true,"status":"started"}'), GatewayState.UP),
        (http("503 Service Unavailable", '{"ok":false,"status":"starting"}'), GatewayState.STARTING),
        (http("503 Service Unavailable", '{"ok":false,"status":"draining"}'), GatewayState.DRAINING),
        (http("503 Service Unavailable", "busy"), GatewayState.DOWN),
        (http("404 Not Found", ""), GatewayState.UP),
        (http("401 Unauthorized", ""), GatewayState.DOWN),
        (b"", GatewayState.DOWN),
    ],
)
def test_each_answer_has_its_state(answer: bytes, state: GatewayState) -> None:
    with server(answer) as url:
        assert probe(url)[0] is state


def test_nobody_listening_is_down_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    state, took_ms, _ = probe(f"http://127.0.0.1:{port}")
    assert state is GatewayState.DOWN
    assert took_ms < 250


def test_a_server_that_drips_is_down_at_the_deadline_and_never_blocks_the_loop() -> None:
    with server(*[b"x"] * 1000, pause_s=0.05) as url:
        state, took_ms, held_ms = probe(url)
    assert state is GatewayState.DOWN
    assert 250 <= took_ms < 600
    assert held_ms < 100


def test_a_name_is_not_looked_up() -> None:
    state, took_ms, _ = probe("http://gateway.example:80")
    assert state is GatewayState.DOWN
    assert took_ms < 250
