"""The release is written down twice, for speed; both say the same."""

import tomllib
from pathlib import Path

from cronward.protocol.version import VERSION


def test_the_release_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION
