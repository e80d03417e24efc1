"""Plays systemd for one service: reads its unit file and does with a real process what systemd would do.

Only what matters to Cronward: environment, control group, directories, notifications from the main process, KillMode,
stop timeouts and what happens to the directories when the service stops.
"""

import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import wait_until

IN_GROUP = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
"""Joins the control group before it becomes the service, as systemd's fork does."""


def cgroup2() -> Path | None:
    """Where cgroup2 is mounted, if this process may make groups there."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] == "cgroup2":
            mount = Path(before.split()[4])
            return mount if os.access(mount / "cgroup.procs", os.W_OK) else None
    return None


def remove_group(group: Path) -> None:
    """Ends every process in the group and below it, and removes it."""
    if not group.exists():
        return
    (group / "cgroup.kill").write_text("1")
    wait_until(lambda: "populated 0" in (group / "cgroup.events").read_text(), f"{group} is empty")
    for directory, _, _ in os.walk(group, topdown=False):
        os.rmdir(directory)


class Unit:
    """A parsed unit file: key → values in order; an empty value clears what was before it, as systemd does it."""

    def __init__(self, file: Path) -> None:
        self.name = file.name
        self._values: dict[str, list[str]] = {}
        for line in file.read_text().splitlines():
            if line.startswith(("#", ";", "[")) or not line.strip():
                continue
            key, _, value = line.partition("=")
            values = self._values.setdefault(key, [])
            if value:
                values.append(value)
            else:
                values.clear()

    def get(self, key: str, default: str = "") -> str:
        """The last value of a key."""
        values = self._values.get(key)
        return values[-1] if values else default

    def keys(self) -> set[str]:
        return set(self._values)

    def words(self, key: str) -> list[str]:
        """All values of a key, split at blanks."""
        return [word for value in self._values.get(key, []) for word in shlex.split(value)]


class Service:
    """One unit, started and stopped as often as wanted, below the scratch root instead of /.

    `watchdog_s` stands for the unit's WatchdogSec, which is longer than a test wants to wait.
    """

    def __init__(self, unit: Unit, root: Path, groups: Path, watchdog_s: float) -> None:
        assert unit.get("WatchdogSec") != ""
        self.unit = unit
        self.watchdog_s = watchdog_s
        self.group = groups / unit.name
        self.main: subprocess.Popen[bytes] | None = None
        self.notifications: list[str] = []
        self._root = root
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._notify.setblocking(False)
        self._notify.bind(str(root / f"{unit.name}.notify"))

    def start(self, deadline_s: float = 20) -> None:
        """Starts the main process in the unit's group and waits for READY=1 from it."""
        self.group.mkdir(parents=True, exist_ok=True)
        for directory, mode in self._directories():
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(mode)
        self.notifications.clear()
        command = self._placed(self.unit.get("ExecStart")).replace("/opt/cronward/bin/python", sys.executable)
        with (self._root / f"{self.unit.name}.log").open("ab") as log:
            self.main = subprocess.Popen(
                ["sh", "-c", IN_GROUP, str(self.group), *shlex.split(command)],
                cwd="/",
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=int(self.unit.get("UMask", "0022"), 8),
                start_new_session=True,
            )
        wait_until(lambda: self.notified("READY=1"), f"{self.unit.name} is ready", deadline_s)

    def notified(self, line: str) -> bool:
        """Whether the main process has sent `line` since its start. Others are not heard (NotifyAccess=main)."""
        assert self.main is not None
        assert self.unit.get("NotifyAccess") == "main"
        while True:
            try:
                data, ancillary, _, _ = self._notify.recvmsg(4096, socket.CMSG_SPACE(12))
            except BlockingIOError:
                return line in self.notifications
            pid, _, _ = struct.unpack("iii", ancillary[0][2])
            if pid == self.main.pid:
                self.notifications += data.decode().splitlines()

    def stop(self) -> int:
        """SIGTERM, after TimeoutStopSec SIGKILL, to those whom KillMode names; the main process's exit status."""
        assert self.main is not None
        self._signal(signal.SIGTERM)
        try:
            status = self.main.wait(timeout=float(self.unit.get("TimeoutStopSec", "90")))
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            status = self.main.wait(timeout=10)
        if self.unit.get("RuntimeDirectoryPreserve", "no") == "no" and self.unit.get("RuntimeDirectory"):
            shutil.rmtree(self._root / "run" / self.unit.get("RuntimeDirectory"))
        return status

    def reload(self) -> None:
        """Runs ExecReload."""
        assert self.main is not None
        command = self.unit.get("ExecReload").replace("$MAINPID", str(self.main.pid))
        subprocess.run(shlex.split(command), check=True)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Ends what is left, without asking."""
        remove_group(self.group)
        if self.main is not None:
            self.main.wait(timeout=10)
        self._notify.close()

    def pids(self) -> set[int]:
        """Processes in the unit's own group (not below it)."""
        return {int(pid) for pid in (self.group / "cgroup.procs").read_text().split()}

    def _signal(self, number: signal.Signals) -> None:
        assert self.main is not None
        if self.unit.get("KillMode", "control-group") == "process":
            self.main.send_signal(number)
            return
        for procs in self.group.rglob("cgroup.procs"):
            for pid in procs.read_text().split():
                os.kill(int(pid), number)

    def _directories(self) -> list[tuple[Path, int]]:
        bases = {"StateDirectory": self._root / "var" / "lib", "RuntimeDirectory": self._root / "run"}
        return [
            (base / self.unit.get(key), int(self.unit.get(f"{key}Mode", "0755"), 8))
            for key, base in bases.items()
            if self.unit.get(key)
        ]

    def _environ(self) -> dict[str, str]:
        assert self.unit.get("Type") == "notify"
        environ = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self._root),
            "NOTIFY_SOCKET": str(self._root / f"{self.unit.name}.notify"),
            "INVOCATION_ID": "0" * 32,
            "JOURNAL_STREAM": "8:1",
            "SYSTEMD_EXEC_PID": "1",
            "WATCHDOG_USEC": str(int(self.watchdog_s * 1e6)),
            # the pid itself is not known before the fork; without WATCHDOG_PID the variable holds for every process
        }
        environ |= dict(word.split("=", 1) for word in map(self._placed, self.unit.words("Environment")))
        # Below a scratch root no file of the machine may play a part.
        environ["CRONWARD_CONFIG"] = str(self._root / "cronward.toml")
        return environ

    def _placed(self, text: str) -> str:
        return text.replace("/var/lib/", f"{self._root}/var/lib/").replace("=/run/", f"={self._root}/run/")
