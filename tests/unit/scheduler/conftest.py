"""A scheduler without sockets, for each test its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scheduler_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    scheduler = Bench(tmp_path)
    yield scheduler
    scheduler.close()


@pytest.fixture
def ready(bench: Bench) -> Bench:
    """With a reconciled launcher."""
    bench.reconcile()
    return bench
