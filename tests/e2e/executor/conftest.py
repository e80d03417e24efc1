from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.executor_rig import Executor, Rig
from tests.support.executor_rig import rig as made_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with made_rig(tmp_path) as made:
        yield made


@pytest.fixture
def executor(rig: Rig) -> Executor:
    return rig.start()
