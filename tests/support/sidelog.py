"""The side log: jobs write down themselves that they ran. The oracle of every test about loss and repetition."""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent


class Entry(NamedTuple):
    """One line: when (epoch ns), the label that the test chose, the run id that the job saw (`-` for none)."""

    ns: int
    label: str
    run: str


class SideLog:
    """One side log file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def command(self, label: str, stay_ms: int | None = None) -> list[str]:
        """argv of a job that writes `label`, or `label:start` and `label:end` with `stay_ms` between them."""
        return [*program(), str(self.file), label, *([] if stay_ms is None else [str(stay_ms)])]

    def entries(self, label: str | None = None) -> list[Entry]:
        """What was written so far, oldest first; only of `label` if given."""
        if not self.file.exists():
            return []
        found = []
        for line in self.file.read_text().splitlines():
            ns, written, run = line.split(" ")
            if label in (None, written):
                found.append(Entry(int(ns), written, run))
        return found

    def count(self, label: str) -> int:
        return len(self.entries(label))


@functools.cache
def program() -> tuple[str, ...]:
    """argv[0..] of the program: a static one, compiled once per source; in Python where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return (sys.executable, "-I", "-S", str(_HERE / "sidelog_slow.py"))
    return (str(compiled(_HERE / "sidelog.c", compiler, "-static")),)


def compiled(source: Path, compiler: str, *flags: str) -> Path:
    """`source` compiled, kept in the temporary directory under the digest of its text and flags."""
    digest = hashlib.sha256(source.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    target = Path(tempfile.gettempdir()) / f"cronward-tests-{os.getuid()}" / f"{source.stem}-{digest}"
    if not target.exists():
        target.parent.mkdir(mode=0o755, exist_ok=True)
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        subprocess.run([compiler, "-O2", "-Wall", "-Werror", *flags, "-o", str(fresh), str(source)], check=True)
        fresh.replace(target)
    return target
