"""Directories: where they come from, and that a socket path which the kernel would refuse is refused first."""

import os
from pathlib import Path

import pytest

from cronward.protocol import paths
from cronward.protocol.errors import ConfigError

LONGEST = len("/status/events")


def test_flag_wins_over_environment_over_systemd() -> None:
    systemd = {"STATE_DIRECTORY": "/c", "RUNTIME_DIRECTORY": "/cr"}
    environ = systemd | {"CRONWARD_STATE_DIR": "/b", "CRONWARD_RUNTIME_DIR": "/br"}
    assert paths.resolve(environ, "/a", "/ar") == paths.Paths(Path("/a"), Path("/ar"))
    assert paths.resolve(environ) == paths.Paths(Path("/b"), Path("/br"))
    assert paths.resolve(systemd) == paths.Paths(Path("/c"), Path("/cr"))


def test_defaults_of_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert paths.resolve({}) == paths.Paths(Path("/var/lib/cronward"), Path("/run/cronward"))


def test_defaults_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    home = {"HOME": "/home/u"}
    state = Path("/home/u/.local/state/cronward")
    assert paths.resolve(home) == paths.Paths(state, state / "runtime")
    xdg = home | {"XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/run/user/1000"}
    assert paths.resolve(xdg) == paths.Paths(Path("/s/cronward"), Path("/run/user/1000/cronward"))


def test_the_limit_is_exact_and_the_message_says_what_to_do() -> None:
    fits = "/" + "x" * (paths.IPC_PATH_MAX_BYTES - LONGEST - 1)
    assert len(str(paths.resolve({}, "/s", fits).events)) == paths.IPC_PATH_MAX_BYTES
    with pytest.raises(ConfigError, match="CRONWARD_RUNTIME_DIR") as raised:
        paths.resolve({}, "/s", fits + "x")
    assert "108 bytes" in raised.value.message


def test_the_limit_counts_bytes_not_letters() -> None:
    letters = (paths.IPC_PATH_MAX_BYTES - LONGEST - 1) // 2
    paths.resolve({}, "/s", "/" + "ä" * letters)
    with pytest.raises(ConfigError):
        paths.resolve({}, "/s", "/" + "ä" * (letters + 1))


def test_the_kernel_agrees_on_the_limit(tmp_path: Path) -> None:
    """The constant is the longest path that a socket can be bound to."""
    import socket

    room = paths.IPC_PATH_MAX_BYTES - len(os.fsencode(tmp_path)) - 1
    if room < 1:
        pytest.skip("the temporary directory's own path is too long")
    with socket.socket(socket.AF_UNIX) as fits:
        fits.bind(str(tmp_path / ("x" * room)))
    with socket.socket(socket.AF_UNIX) as too_long, pytest.raises(OSError, match="too long"):
        too_long.bind(str(tmp_path / ("x" * (room + 1))))
