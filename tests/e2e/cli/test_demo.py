"""`make demo`: it shows runs, tells what to try, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import belonging_to, end_all
from tests.support.waiting import wait_until


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where the demo makes its scratch directory. Short, as sockets need it."""
    short = Path(f"/tmp/cwd-{os.getpid()}")
    short.mkdir()
    yield short
    end_all(short)
    short.rmdir()


def start(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cronward.cli.demo", *arguments],
        env=os.environ | {"TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_it_shows_runs_and_ends_by_itself(directory: Path) -> None:
    demo = start(directory, "--seconds", "8")
    out, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0, out
    assert re.search(r"tick \w{12} ok, exit 0", out)
    assert re.search(r"flaky \w{12} error/exit_code, exit 3", out)
    assert "| no route" in out
    assert list(directory.iterdir()) == []
    assert belonging_to(directory) == []


def test_ctrl_c_ends_it_and_the_shown_settings_work_in_another_terminal(directory: Path) -> None:
    demo = start(directory)
    assert demo.stdout is not None
    shown = []
    for line in demo.stdout:
        shown.append(line)
        if " ok, exit 0" in line:
            break
    settings = dict(re.findall(r"export (\w+)=(\S+)", "".join(shown)))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("cronward")), "runs", "tick"],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ok" in done.stdout
    demo.send_signal(signal.SIGINT)
    demo.stdout.read()
    demo.stdout.close()
    assert demo.wait(40) == 0
    wait_until(lambda: belonging_to(directory) == [], "nothing is left")
    assert list(directory.iterdir()) == []
