"""A real scheduler, and a launcher that the test plays."""

from collections.abc import Iterator

import pytest

from tests.support.instance import Instance
from tests.support.scheduler_rig import ScriptedLauncher


@pytest.fixture
def scheduler(instance: Instance) -> Instance:
    """A scheduler without a launcher."""
    instance.start_scheduler()
    return instance


@pytest.fixture
def launcher(scheduler: Instance) -> Iterator[ScriptedLauncher]:
    """Connected to it; has not said anything yet."""
    with ScriptedLauncher(scheduler.paths) as scripted:
        yield scripted


@pytest.fixture
def ready(launcher: ScriptedLauncher) -> ScriptedLauncher:
    """Reconciled."""
    launcher.reconcile()
    return launcher
