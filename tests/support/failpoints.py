"""Arming failpoints of a real process and waiting until one of them was hit."""

from pathlib import Path

from tests.support.waiting import wait_until


def environment(actions: dict[str, str], directory: Path) -> dict[str, str]:
    """Variables that arm `actions` (point → action, e.g. `crash` or `delay:200@2`), each to act once.

    A process that is started again with the same directory passes: the file of the first hit is there.
    """
    directory.mkdir(exist_ok=True)
    return {
        "CRONWARD_FAILPOINTS_ENABLE": "yes",
        "CRONWARD_FAILPOINTS": ";".join(f"{name}={action}" for name, action in actions.items()),
        "CRONWARD_FAILPOINTS_DIR": str(directory),
    }


def wait_hit(directory: Path, name: str, deadline_s: float = 20) -> int:
    """Waits until some process hit the point `name` and returns its pid."""
    mark = directory / name
    wait_until(lambda: mark.exists() and mark.read_text() != "", f"a process hits {name}", deadline_s)
    return int(mark.read_text())
