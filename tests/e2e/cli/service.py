"""`cronward up` with the real daemons, and the command line against it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

import msgspec

from cronward.protocol.paths import Paths
from tests.support.installation import Installation
from tests.support.waiting import wait_until

CRONWARD = str(Path(sys.executable).with_name("cronward"))

Done = subprocess.CompletedProcess[str]


class Service(Installation):
    """An installation that `cronward up` runs; the command line runs with its environment."""

    def __init__(self) -> None:
        root = Path(tempfile.mkdtemp(prefix="cw-", dir="/tmp"))
        super().__init__(root, Paths(root / "s", root / "r"))
        (root / "cronward.toml").touch()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CRONWARD_")}
        self.environ = inherited | {
            "CRONWARD_STATE_DIR": str(self.paths.state),
            "CRONWARD_RUNTIME_DIR": str(self.paths.runtime),
            "CRONWARD_CONFIG": str(root / "cronward.toml"),
            "TZ": "UTC",
        }
        self.ups: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for up in self.ups:
            up.wait(10)
        shutil.rmtree(self.root, ignore_errors=True)

    def start_up(self) -> subprocess.Popen[bytes]:
        """Starts `cronward up --json`; its lines go to `up.log`."""
        with (self.root / "up.log").open("ab") as log:
            up = subprocess.Popen([CRONWARD, "up", "--json"], env=self.environ, stderr=log, start_new_session=True)
        self.ups.append(up)
        return up

    def start(self) -> Self:
        """`cronward up`, ready and reconciled."""
        self.start_up()
        self.wait_event("up.ready")
        self.wait_reconciled()
        return self

    def log(self) -> list[dict[str, object]]:
        lines = (self.root / "up.log").read_bytes().splitlines()
        return [msgspec.json.decode(line, type=dict[str, object]) for line in lines]

    def events(self, event: str) -> list[dict[str, object]]:
        return [line for line in self.log() if line["event"] == event]

    def wait_event(self, event: str, count: int = 1) -> list[dict[str, object]]:
        wait_until(lambda: len(self.events(event)) >= count, f"{count} × {event} in {self.log()}")
        return self.events(event)

    def run(self, *arguments: str, timeout_s: float = 30) -> Done:
        """One command, to its end."""
        return subprocess.run(
            [CRONWARD, *arguments], env=self.environ, capture_output=True, text=True, timeout=timeout_s, check=False
        )

    def ask(self, *arguments: str) -> dict[str, object]:
        """One command that succeeds, with --json (before the program of `add`), as its decoded answer."""
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        done = self.run(*arguments[:cut], "--json", *arguments[cut:])
        assert done.returncode == 0, done
        return msgspec.json.decode(done.stdout, type=dict[str, object])

    def stop_up(self, number: signal.Signals = signal.SIGTERM, deadline_s: float = 20) -> int:
        """Signals the latest `up` and returns how it ended."""
        self.ups[-1].send_signal(number)
        return self.ups[-1].wait(deadline_s)
