"""Services for the end-to-end tests of the command line."""

from collections.abc import Iterator

import pytest

from tests.e2e.cli.service import Service


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    """One service for all tests of a module: each makes jobs of its own names."""
    with Service() as made:
        yield made.start()


@pytest.fixture
def service() -> Iterator[Service]:
    """A service of this test alone; nothing runs in it yet."""
    with Service() as made:
        yield made
