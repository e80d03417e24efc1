"""Log lines: one JSON object each, with a stable event."""

import logging
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
