"""Fixtures that several kinds of tests use."""

from collections.abc import Iterator

import pytest

from tests.support.instance import Instance


@pytest.fixture
def instance() -> Iterator[Instance]:
    """A scratch installation; nothing runs in it yet."""
    with Instance() as scratch:
        yield scratch
        assert scratch.bugs() == []
