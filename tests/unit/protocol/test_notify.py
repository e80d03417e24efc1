"""Readiness and liveness: what a supervisor hears, and that one who does not listen is no reason to fail."""

import os
import socket
from pathlib import Path

import pytest

from cronward.protocol.notify import Notifier


def heard(supervisor: socket.socket) -> list[str]:
    supervisor.settimeout(5)
    return supervisor.recv(4096).decode().split("\n")


@pytest.mark.parametrize("abstract", [False, True])
def test_ready_is_heard_at_a_path_and_at_an_abstract_address(tmp_path: Path, abstract: bool) -> None:
    name = f"cronward-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind("\0" + name if abstract else str(tmp_path / "n"))
        notifier = Notifier({"NOTIFY_SOCKET": "@" + name if abstract else str(tmp_path / "n")})
        notifier.ready("up")
        assert heard(supervisor) == ["READY=1", "STATUS=up"]
        notifier.send("WATCHDOG=1")
        assert heard(supervisor) == ["WATCHDOG=1"]


def test_a_supervisor_that_is_gone_or_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).ready("up")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "n"))
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "n")})
        for _ in range(2000):  # many times what the kernel queues for a reader that does not read
            notifier.send("WATCHDOG=1")


def test_the_ready_descriptor_gets_one_newline_and_is_closed() -> None:
    read_fd, write_fd = os.pipe()
    notifier = Notifier({}, write_fd)
    notifier.ready("up")
    notifier.ready("again")
    assert os.read(read_fd, 10) == b"\n"
    assert os.read(read_fd, 10) == b""
    os.close(read_fd)


@pytest.mark.parametrize(
    ("environ", "expected_ms"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15_000),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15_000),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_allowed(environ: dict[str, str], expected_ms: int | None) -> None:
    assert Notifier(environ).watchdog_ms == expected_ms
