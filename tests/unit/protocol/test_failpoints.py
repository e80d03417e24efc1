"""Failpoints: what is accepted, and what each action does to a real process."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cronward.protocol import failpoints
from cronward.protocol.errors import ConfigError
from cronward.protocol.failpoints import Action
from tests.support.processes import state
from tests.support.waiting import wait_until

POINT = "executor.during_task"
PASSING = f"""
import os
from cronward.protocol import failpoints
failpoints.arm(os.environ)
for passage in range(3):
    failpoints.hit({POINT!r})
    print(passage, flush=True)
"""


def passing(spec: str, directory: Path | None = None) -> subprocess.Popen[bytes]:
    """A process that passes the point three times and prints each."""
    armed = {"CRONWARD_FAILPOINTS": spec, "CRONWARD_FAILPOINTS_ENABLE": "yes"}
    if directory is not None:
        armed["CRONWARD_FAILPOINTS_DIR"] = str(directory)
    return subprocess.Popen(
        [sys.executable, "-c", PASSING], env=os.environ | armed, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_parse() -> None:
    armed = failpoints.parse("scheduler.before_notify=stop; executor.after_task=delay:250@3;")
    assert set(armed) == {"scheduler.before_notify", "executor.after_task"}
    delayed = armed["executor.after_task"]
    assert (delayed.action, delayed.delay_ms, delayed.nth) == (Action.DELAY, 250, 3)
    assert failpoints.parse("") == {}


@pytest.mark.parametrize(
    "spec",
    [
        "nowhere=crash",
        POINT,
        f"{POINT}=",
        f"{POINT}=burn",
        f"{POINT}=delay",
        f"{POINT}=delay:-1",
        f"{POINT}=crash@0",
        f"{POINT}=crash@x",
        f"{POINT}=crash,{POINT}=stop",
        f"{POINT} =crash",
    ],
)
def test_a_bad_spec_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="failpoint"):
        failpoints.parse(spec)


def test_an_armed_point_without_the_switch_is_refused() -> None:
    with pytest.raises(ConfigError, match="CRONWARD_FAILPOINTS_ENABLE"):
        failpoints.arm({"CRONWARD_FAILPOINTS": f"{POINT}=crash"})
    assert failpoints.arm({}) == []


def test_crash_is_a_sigkill() -> None:
    process = passing(f"{POINT}=crash@2")
    output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (-signal.SIGKILL, b"0\n")


def test_error_raises() -> None:
    process = passing(f"{POINT}=error")
    output, errors = process.communicate(timeout=20)
    assert output == b""
    assert f"FailpointError: failpoint {POINT}".encode() in errors


def test_stop_is_a_sigstop_and_continues_where_it_was() -> None:
    process = passing(f"{POINT}=stop@1")
    wait_until(lambda: state(process.pid) == "T", "the process has stopped itself")
    process.send_signal(signal.SIGCONT)
    output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, b"0\n1\n2\n")


def test_delay_waits() -> None:
    before = time.monotonic()
    process = passing(f"{POINT}=delay:400")
    output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (0, b"0\n1\n2\n")
    assert time.monotonic() - before >= 1.2


def test_with_a_directory_a_point_acts_once_and_says_where(tmp_path: Path) -> None:
    first = passing(f"{POINT}=crash", tmp_path)
    assert first.communicate(timeout=20)[0] == b""
    assert (tmp_path / POINT).read_text() == str(first.pid)
    again = passing(f"{POINT}=crash", tmp_path)
    assert again.communicate(timeout=20)[0] == b"0\n1\n2\n"


def sources(package: str) -> str:
    return "".join(source.read_text() for source in (Path(__file__).parents[3] / package).rglob("*.py"))


@pytest.mark.parametrize("point", failpoints.WINDOWS)
def test_every_declared_point_is_in_the_code_of_its_process(point: str) -> None:
    assert f'"{point}"' in sources(point.partition(".")[0])


@pytest.mark.parametrize("package", ["scheduler", "launcher", "executor"])
def test_every_point_in_the_code_is_declared(package: str) -> None:
    assert set(re.findall(r'failpoints\.hit\(\s*"([^"]+)"', sources(package))) <= set(failpoints.WINDOWS)
