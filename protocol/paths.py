"""Where everything lives: the state directory (kept) and the runtime directory (sockets)."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cronward.protocol.errors import ConfigError
from cronward.protocol.ids import run_key

IPC_PATH_MAX_BYTES = 107
"""sun_path holds 108 bytes with its NUL (unix(7))."""


class Paths(msgspec.Struct, frozen=True):
    """The two directories. Absolute."""

    state: Path
    runtime: Path

    @property
    def database(self) -> Path:
        return self.state / "cronward.db"

    @property
    def scheduler_lock(self) -> Path:
        return self.state / "scheduler.lock"

    @property
    def launcher_lock(self) -> Path:
        return self.state / "launcher.lock"

    @property
    def secret_key(self) -> Path:
        return self.state / "secret.key"

    @property
    def runs(self) -> Path:
        return self.state / "runs"

    @property
    def backups(self) -> Path:
        return self.state / "backups"

    @property
    def runtime_lock(self) -> Path:
        return self.runtime / "lock"

    @property
    def control(self) -> Path:
        return self.runtime / "control"

    @property
    def launch(self) -> Path:
        return self.runtime / "launch"

    @property
    def run(self) -> Path:
        return self.runtime / "run"

    @property
    def status(self) -> Path:
        return self.runtime / "status"

    @property
    def events(self) -> Path:
        return self.status / "events"

    @property
    def query(self) -> Path:
        return self.status / "query"

    def run_directory(self, run_id: str) -> Path:
        return self.runs / run_key(run_id)


def resolve(environ: Mapping[str, str], state: str | None = None, runtime: str | None = None) -> Paths:
    """The directories from flags, CRONWARD_STATE_DIR and CRONWARD_RUNTIME_DIR, systemd's variables, or the defaults.

    Defaults: /var/lib/cronward and /run/cronward for root, otherwise the XDG state home and the XDG runtime
    directory (~/.local/state/cronward/runtime where there is none). Raises ConfigError if a socket path is too long.
    """
    root = os.getuid() == 0
    home = Path(environ.get("HOME") or "/")
    default_state = (
        Path("/var/lib/cronward")
        if root
        else Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "cronward"
    )
    state_dir = Path(
        state or environ.get("CRONWARD_STATE_DIR") or environ.get("STATE_DIRECTORY") or default_state
    ).absolute()
    default_runtime = Path("/run/cronward") if root else state_dir / "runtime"
    if not root and environ.get("XDG_RUNTIME_DIR"):
        default_runtime = Path(environ["XDG_RUNTIME_DIR"]) / "cronward"
    runtime_dir = Path(
        runtime or environ.get("CRONWARD_RUNTIME_DIR") or environ.get("RUNTIME_DIRECTORY") or default_runtime
    ).absolute()
    paths = Paths(state_dir, runtime_dir)
    for socket_path in (paths.control, paths.launch, paths.run, paths.events, paths.query):
        length = len(os.fsencode(socket_path))
        if length > IPC_PATH_MAX_BYTES:
            raise ConfigError(
                f"runtime directory {runtime_dir}: the socket path {socket_path} has {length} bytes,"
                f" at most {IPC_PATH_MAX_BYTES} are possible; choose a shorter one with CRONWARD_RUNTIME_DIR"
            )
    return paths
