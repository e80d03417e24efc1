"""The rig and its launcher."""

from collections.abc import Iterator

import pytest

from tests.e2e.launcher.rig import Rig
from tests.support.instance import Instance


@pytest.fixture
def rig(instance: Instance) -> Iterator[Rig]:
    """A scheduler that listens; no launcher runs yet."""
    with Rig(instance) as scheduler:
        yield scheduler
