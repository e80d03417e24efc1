"""A scratch installation of Cronward with real processes, for tests and benchmarks."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Self

from cronward.cli.torture_logs import DaemonLogs
from cronward.protocol.paths import Paths
from tests.support import failpoints
from tests.support.installation import Installation
from tests.support.namespaces import SmallDisk
from tests.support.processes import Daemon, LogLine
from tests.support.waiting import wait_until


class Instance(Installation):
    """One state directory, one runtime directory, at most one scheduler and one launcher at a time.

    The directories are below `base`, a short path, since that of a socket holds 107 bytes. With `disk_mib` the state
    directory is a small disk of its own. `close` ends every process of the instance and removes everything.
    """

    def __init__(
        self, environ: dict[str, str] | None = None, disk_mib: int | None = None, base: Path = Path("/tmp")
    ) -> None:
        root = Path(tempfile.mkdtemp(prefix="cw-", dir=base))
        super().__init__(root, Paths(root / "s", root / "r"))
        self.hits = self.root / "hits"
        self.disk = SmallDisk(self.paths.state, disk_mib) if disk_mib is not None else None
        self.prefix = self.disk.prefix() if self.disk is not None else []
        """Words before the command of each daemon that is started from now on."""
        config = self.root / "cronward.toml"
        config.touch()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CRONWARD_")}
        self.environ = inherited | {
            "CRONWARD_STATE_DIR": str(self.paths.state),
            "CRONWARD_RUNTIME_DIR": str(self.paths.runtime),
            "CRONWARD_CONFIG": str(config),
            **(environ or {}),
        }
        self.daemons: list[Daemon] = []
        self._scheduler: Daemon | None = None
        self._launcher: Daemon | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # processes

    @property
    def scheduler(self) -> Daemon:
        """The scheduler started last."""
        assert self._scheduler is not None
        return self._scheduler

    @property
    def launcher(self) -> Daemon:
        """The launcher started last."""
        assert self._launcher is not None
        return self._launcher

    def start(self) -> Self:
        """Scheduler and launcher, reconciled."""
        self.start_scheduler()
        self.start_launcher()
        self.wait_reconciled()
        return self

    def start_scheduler(
        self,
        environ: dict[str, str] | None = None,
        arm: dict[str, str] | None = None,
        wait_ready: bool = True,
        deadline_s: float = 20,
    ) -> Daemon:
        """A scheduler; `arm` maps failpoints to actions. Raises NotReady."""
        self._scheduler = self._start("scheduler", ["serve"], environ, arm)
        if wait_ready:
            self._scheduler.wait_ready(deadline_s)
        return self._scheduler

    def start_launcher(
        self,
        environ: dict[str, str] | None = None,
        arm: dict[str, str] | None = None,
        wait_ready: bool = True,
        deadline_s: float = 20,
    ) -> Daemon:
        """A launcher; its failpoints and environment are also those of its executors."""
        self._launcher = self._start("launcher", [], environ, arm)
        if wait_ready:
            self._launcher.wait_ready(deadline_s)
        return self._launcher

    def stop(self) -> None:
        """Ends every process and keeps the files."""
        for daemon in self.daemons:
            daemon.close()
        super().close()

    def close(self) -> None:
        """Ends everything and removes the directories. May be called twice."""
        self.stop()
        if self.disk is not None:
            self.disk.close()
            self.disk = None
        shutil.rmtree(self.root, ignore_errors=True)

    # logs

    def events(self, event: str) -> list[LogLine]:
        """Log lines of one event, of every process that was started, in the order of the processes."""
        return [line for daemon in self.daemons for line in daemon.events(event)]

    def wait_event(self, event: str, count: int = 1, deadline_s: float = 20) -> list[LogLine]:
        """Waits until `count` such lines were logged."""
        wait_until(lambda: len(self.events(event)) >= count, f"{count} × {event} in the logs", deadline_s)
        return self.events(event)

    def bugs(self) -> list[str]:
        """What the daemons' logs say that no crash explains."""
        logs = DaemonLogs()
        logs.files = [daemon.log for daemon in self.daemons]
        logs.read()
        return logs.bugs

    # details

    def _start(self, name: str, words: list[str], environ: dict[str, str] | None, arm: dict[str, str] | None) -> Daemon:
        armed = failpoints.environment(arm, self.hits) if arm else {}
        argv = [sys.executable, "-m", f"cronward.{name}", *words]
        log = self.root / f"{len(self.daemons):02}-{name}.log"
        daemon = Daemon(self.prefix + argv, self.environ | (environ or {}) | armed, log)
        self.daemons.append(daemon)
        return daemon
