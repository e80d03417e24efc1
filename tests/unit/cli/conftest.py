"""Fixtures of the command line's tests: directories in which nothing runs, and scripted sockets in them."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.protocol.paths import Paths
from tests.unit.cli.scripted import ScriptedRouter


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """Directories of an installation in which nothing runs, named by the environment. Short, as sockets need it."""
    root = Path(tempfile.mkdtemp(prefix="cw-", dir="/tmp"))
    found = Paths(root / "s", root / "r")
    found.runs.mkdir(parents=True)
    found.status.mkdir(parents=True)
    monkeypatch.setenv("CRONWARD_STATE_DIR", str(found.state))
    monkeypatch.setenv("CRONWARD_RUNTIME_DIR", str(found.runtime))
    monkeypatch.setenv("CRONWARD_CONFIG", str(root / "cronward.toml"))
    (root / "cronward.toml").touch()
    yield found
    shutil.rmtree(root)


@pytest.fixture
def control(paths: Paths) -> Iterator[ScriptedRouter]:
    """The control socket; not bound before `start`."""
    router = ScriptedRouter(paths.control)
    yield router
    router.close()


@pytest.fixture
def query(paths: Paths) -> Iterator[ScriptedRouter]:
    """The query socket; not bound before `start`."""
    router = ScriptedRouter(paths.query)
    yield router
    router.close()
