"""The documents say what is so: commands and codes are named, examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cronward.cli.main import ALIASES, COMMANDS
from cronward.protocol import exits
from tests.e2e.cli.service import Service

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_names_every_command_alias_and_exit_code() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name in [*COMMANDS, *ALIASES]:
        assert re.search(rf"`{name}[` ]", page), name
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert all(re.search(rf"\b{code}\b", page) for code in codes)


@pytest.mark.parametrize("index", [0, 1])
def test_an_example_for_client_authors_runs(running: Service, index: int) -> None:
    code = re.findall(r"```python\n(.*?)```", (DOCS / "clients.md").read_text(encoding="utf-8"), re.DOTALL)[index]
    done = subprocess.run(
        [sys.executable, "-c", code], env=running.environ, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
