"""Locks: one holder, told by name, released by the end of the process and by nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cronward.protocol import locks
from cronward.protocol.identity import ProcessIdentity, is_alive, own_identity, start_ticks
from tests.support.processes import state
from tests.support.waiting import wait_until

HOLDING = """
import sys
from pathlib import Path
from cronward.protocol import locks
locks.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        with pytest.raises(locks.Held, match=str(process.pid)) as raised:
            locks.acquire(path)
        assert raised.value.holder is not None
        assert raised.value.holder.pid == process.pid
        assert is_alive(raised.value.holder)


def test_sigkill_releases_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        process.send_signal(signal.SIGKILL)
    os.close(locks.acquire(path))


def test_a_stopped_process_still_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(process.pid) == "T", "the holder is stopped")
        with pytest.raises(locks.Held):
            locks.acquire(path)
        process.kill()


@pytest.mark.parametrize("contents", [b"", b"1", b"\xff\xfe", b'[1,2,"x"]', b"not json"])
def test_what_is_in_the_file_never_decides(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "lock"
    path.write_bytes(contents)
    fd = locks.acquire(path)
    assert os.pread(fd, 100, 0).startswith(b"[%d," % os.getpid())
    os.close(fd)


def test_an_unreadable_holder_is_still_a_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path):
        path.write_bytes(b"garbage")
        with pytest.raises(locks.Held, match="another process") as raised:
            locks.acquire(path)
        assert raised.value.holder is None


def test_the_lock_is_not_inherited_by_programs(tmp_path: Path) -> None:
    fd = locks.acquire(tmp_path / "lock")
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_a_zombie_and_a_reused_pid_are_dead() -> None:
    mine = own_identity()
    assert is_alive(mine)
    assert not is_alive(ProcessIdentity(mine.pid, mine.start_ticks + 1, mine.boot_id))
    assert not is_alive(ProcessIdentity(mine.pid, mine.start_ticks, "another boot"))
    process = subprocess.Popen(["true"])
    wait_until(lambda: state(process.pid) == "Z", "the process is a zombie")
    assert start_ticks(process.pid) is None
    process.wait()
    assert start_ticks(process.pid) is None
