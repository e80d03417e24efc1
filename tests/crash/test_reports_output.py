"""Reports about output, replayed on the real processes."""

import os
import subprocess
import sys

from tests.support.instance import Instance
from tests.support.waiting import wait_until

RUNS = 400
"""Each is a line in the scheduler's log: together more than a pipe holds."""


def test_b158_a_log_that_nobody_reads_holds_nothing_up(instance: Instance) -> None:
    """B158: the reader of the service's own log stands still; the schedule goes on."""
    read_fd, write_fd = os.pipe()
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "cronward.scheduler", "serve"],
        env=instance.environ,
        stdin=subprocess.DEVNULL,
        stderr=write_fd,
        start_new_session=True,
    )
    os.close(write_fd)
    try:
        wait_until(instance.paths.control.exists, "the scheduler has bound its sockets")
        instance.start_launcher()
        instance.wait_reconciled()
        due_ms = instance.soon_ms()
        for number in range(RUNS):
            instance.add_at(instance.sidelog.command(f"job{number}"), due_ms)
        instance.wait_idle()
        assert len(instance.sidelog.entries()) == RUNS
        with open(read_fd, "rb") as reader:
            kept = reader.read1(1 << 20)
        assert kept.count(b"run.settled") < RUNS, "the pipe was full: otherwise this shows nothing"
    finally:
        scheduler.kill()
        scheduler.wait(10)
