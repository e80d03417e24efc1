"""Log lines: one JSON object each, with a stable event."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from cronward.protocol import log


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Setting up the log is for the life of a process; other tests of this one have to find it as it was."""
    logger = logging.getLogger("cronward")
    handlers, propagate, level = list(logger.handlers), logger.propagate, logger.level
    yield
    logger.handlers[:] = handlers
    logger.propagate = propagate
    logger.setLevel(level)


class FixedClock:
    def wall_ms(self) -> int:
        return 1_700_000_000_000

    def mono_ms(self) -> int:
        return 0


def lines(capfd: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in capfd.readouterr().err.splitlines()]


def test_a_line_is_one_object_whatever_is_in_it(capfd: pytest.CaptureFixture[str]) -> None:
    log.setup("scheduler", "info", FixedClock())
    log.info("run.settled", "100 % \n done\x1b[31m", run="a\nb", names=["x"])
    (line,) = lines(capfd)
    assert line["event"] == "run.settled"
    assert line["message"] == "100 % \n done\x1b[31m"
    assert (line["ts_ms"], line["process"], line["level"]) == (1_700_000_000_000, "scheduler", "info")
    assert (line["run"], line["names"]) == ("a\nb", ["x"])


def test_levels_and_their_change(capfd: pytest.CaptureFixture[str]) -> None:
    log.setup("scheduler", "warning", FixedClock())
    log.info("x.y", "not shown")
    log.set_level("debug")
    log.debug("x.z", "shown")
    assert [line["event"] for line in lines(capfd)] == ["x.z"]


def test_a_traceback_is_part_of_the_line(capfd: pytest.CaptureFixture[str]) -> None:
    log.setup("scheduler", "info", FixedClock())
    try:
        raise ValueError("boom")
    except ValueError:
        log.error("x.y", "failed", exc_info=True)
    (line,) = lines(capfd)
    assert "ValueError: boom" in str(line["traceback"])


def test_lines_that_nobody_reads_are_lost_and_counted() -> None:
    """B158: the writer goes on at once; what is read later is whole lines, and the number of those that are missing."""
    program = (
        "from cronward.protocol import log\n"
        "from cronward.protocol.clock import SystemClock\n"
        "log.setup('p', 'info', SystemClock())\n"
        "for number in range(5000): log.info('x.y', 'n' * (number % 7000), number=number)\n"
        "print('written', flush=True)\n"
        "input()\n"
        "log.info('x.z', 'the reader is back')\n"
    )
    read_fd, write_fd = os.pipe()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=write_fd, text=True
    ) as child:
        os.close(write_fd)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "written\n", "it wrote five thousand lines into a pipe that nobody reads"
        with open(read_fd, "rb") as reader:
            first = reader.read1(1 << 20)
            child.stdin.write("go on\n")
            child.stdin.close()
            rest = reader.read()
    told = [msgspec.json.decode(line) for line in (first + rest).splitlines() if line.endswith(b"}")]
    kept = [line["number"] for line in told if line["event"] == "x.y"]
    assert kept == sorted(set(kept))
    assert [line["event"] for line in told[len(kept) :]] == ["log.lost", "x.z"]
    assert told[-2]["lost"] == 5000 - len(kept)
