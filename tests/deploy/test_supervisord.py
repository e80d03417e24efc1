"""Both processes below a real supervisord with the configuration that is shipped."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.protocol.paths import Paths
from tests.support.installation import Installation
from tests.support.waiting import wait_until

STAY_MS = 4000
CONF = Path(__file__).parents[2] / "deploy" / "supervisord.conf"
BIN = Path(sys.executable).parent


class Supervisord(Installation):
    """supervisord with everything below a scratch root."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, Paths(root / "state", root / "run"))
        text = CONF.read_text()
        for shipped, here in {
            "/opt/cronward/bin/python": sys.executable,
            "/var/lib/cronward": str(self.paths.state),
            "/var/log/cronward": str(root),
            '"/run/cronward"': f'"{self.paths.runtime}"',
            "/run/cronward-supervisord": str(root / "supervisord"),
        }.items():
            assert shipped in text
            text = text.replace(shipped, here)
        self._conf = root / "supervisord.conf"
        self._conf.write_text(text)
        self._daemon = subprocess.Popen(
            [str(BIN / "supervisord"), "--nodaemon", "-c", str(self._conf)],
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "CRONWARD_CONFIG": str(root / "cronward.toml")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (root / "cronward.toml").touch()

    def ctl(self, *words: str) -> str:
        """What supervisorctl answers."""
        command = [str(BIN / "supervisorctl"), "-c", str(self._conf), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout

    def pid(self, program: str) -> int:
        return int(self.ctl("pid", program))

    def close(self) -> None:
        super().close()
        self._daemon.terminate()
        self._daemon.wait(timeout=60)


@pytest.fixture
def machine() -> Iterator[Supervisord]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cw-") as directory:
        made = Supervisord(Path(directory))
        try:
            made.wait_reconciled()
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("program", ["cronward-scheduler", "cronward-launcher"])
def test_a_run_survives_a_restart_of(machine: Supervisord, program: str) -> None:
    wait_until(lambda: machine.ctl("status").count("RUNNING") == 2, "supervisord sees both running", poll_s=0.1)
    run_id = machine.start_job(STAY_MS)
    before = machine.pid(program)
    assert f"{program}: started" in machine.ctl("restart", program)
    assert machine.pid(program) != before
    assert machine.sidelog.count("job:end") == 0, "the restart took longer than the run"
    assert machine.wait_for_run(run_id).state == "ok"
    assert [entry.label for entry in machine.sidelog.entries()] == ["job:start", "job:end"]


def test_a_configuration_error_is_not_retried_for_ever(machine: Supervisord) -> None:
    (machine.root / "cronward.toml").write_text("capacity = 1\n")
    machine.ctl("restart", "cronward-scheduler")
    wait_until(lambda: "EXITED" in machine.ctl("status", "cronward-scheduler"), "it gives up", poll_s=0.1)
