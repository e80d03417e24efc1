"""Directories for the cases: a base database for the session, and a place where each test may put its copies."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.support.case import make_base, scratch


@pytest.fixture(scope="session")
def base() -> Iterator[Path]:
    directory = scratch()
    make_base(directory / "base")
    yield directory / "base"
    shutil.rmtree(directory)


@pytest.fixture
def copy() -> Iterator[Path]:
    directory = scratch()
    yield directory / "case"
    shutil.rmtree(directory)
