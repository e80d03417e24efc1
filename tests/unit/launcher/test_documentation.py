"""docs/launcher.md lists every log event of the launcher, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_event_is_documented() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "launcher").glob("*.py"))
    logged = set(re.findall(r'log\.\w+\(\s*"([a-z]+\.[a-z_]+)"', sources))
    table = (ROOT / "docs" / "launcher.md").read_text().split("## Log events")[1]
    assert set(re.findall(r"`([a-z]+\.[a-z_]+)`", table)) == logged
