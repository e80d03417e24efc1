"""The unit files: systemd accepts them, and they say what keeps runs alive."""

import configparser
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cronward.protocol import exits
from tests.support.systemd import Unit

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = ("cronward-scheduler.service", "cronward-launcher.service", "cronward.target")
SERVICES = UNITS[:2]


@pytest.fixture
def scheduler() -> Unit:
    return Unit(DEPLOY / SERVICES[0])


@pytest.fixture
def launcher() -> Unit:
    return Unit(DEPLOY / SERVICES[1])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_them_without_a_word(tmp_path: Path) -> None:
    for name in UNITS:
        # verify insists that the program exists
        text = (DEPLOY / name).read_text().replace("/opt/cronward/bin/python", sys.executable)
        (tmp_path / name).write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in UNITS)]
    result = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", SERVICES)
def test_the_permanent_exit_codes_are_not_restarted(name: str) -> None:
    unit = Unit(DEPLOY / name)
    assert {int(code) for code in unit.words("RestartPreventExitStatus")} == exits.PERMANENT
    assert unit.get("Restart") == "always"
    assert unit.get("StartLimitIntervalSec") == "0"


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_started_exists(name: str) -> None:
    python, flag, module, *_ = Unit(DEPLOY / name).words("ExecStart")
    assert (python, flag) == ("/opt/cronward/bin/python", "-m")
    assert find_spec(f"{module}.__main__") is not None


def test_both_speak_of_the_same_directories(scheduler: Unit, launcher: Unit) -> None:
    assert scheduler.words("Environment") == launcher.words("Environment")
    assert f"CRONWARD_STATE_DIR=/var/lib/{scheduler.get('StateDirectory')}" in scheduler.words("Environment")
    assert f"CRONWARD_RUNTIME_DIR=/run/{scheduler.get('RuntimeDirectory')}" in scheduler.words("Environment")


def test_only_the_scheduler_owns_directories_and_a_restart_keeps_them(scheduler: Unit, launcher: Unit) -> None:
    assert scheduler.get("RuntimeDirectoryPreserve") == "yes"
    for key in ("RuntimeDirectory", "StateDirectory", "LogsDirectory", "CacheDirectory"):
        assert launcher.get(key) == ""


def test_stopping_the_launcher_touches_no_job(launcher: Unit) -> None:
    assert launcher.get("KillMode") == "process"
    assert launcher.get("OOMPolicy") == "continue"
    assert launcher.get("Delegate") == "yes"


def test_jobs_inherit_nothing_from_the_launchers_unit(launcher: Unit) -> None:
    harmless = {
        *("Description", "Wants", "After", "PartOf", "StartLimitIntervalSec", "WantedBy"),
        *("Type", "NotifyAccess", "ExecStart", "Environment", "KillMode", "Delegate", "OOMPolicy", "Restart"),
        *("RestartSec", "RestartPreventExitStatus", "TimeoutStartSec", "WatchdogSec", "TimeoutStopSec"),
    }
    assert launcher.keys() <= harmless


def test_the_launcher_outlives_a_restart_of_the_scheduler(launcher: Unit) -> None:
    binding = {"Requires", "BindsTo", "Requisite"}
    assert not binding & launcher.keys()
    assert "cronward-scheduler.service" in launcher.words("After")


def test_supervisord_follows_the_same_rules() -> None:
    conf = configparser.RawConfigParser()
    conf.read(DEPLOY / "supervisord.conf")
    for unit_name in SERVICES:
        unit = Unit(DEPLOY / unit_name)
        program = conf[f"program:{unit_name.removesuffix('.service')}"]
        assert program["command"] == unit.get("ExecStart")
        assert program["environment"].replace('"', "").split(",") == unit.words("Environment")
        assert {int(code) for code in program["exitcodes"].split(",")} == exits.PERMANENT
        assert (program["autorestart"], program["startsecs"]) == ("unexpected", "0")
        assert (program["stopasgroup"], program["killasgroup"]) == ("false", "false")
        assert program["stopwaitsecs"] == unit.get("TimeoutStopSec")
