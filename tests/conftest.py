"""Fixtures that several kinds of tests use."""

import signal
from collections.abc import Iterator

import pytest

from tests.support.instance import Instance


def pytest_configure() -> None:
    """Where the tests run in the background of a shell, Ctrl-C is ignored, also by every process that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def instance() -> Iterator[Instance]:
    """A scratch installation; nothing runs in it yet."""
    with Instance() as scratch:
        yield scratch
        assert scratch.bugs() == []
