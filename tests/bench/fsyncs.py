"""Counting the fsyncs of scheduler, launcher and executors, with a preloaded library that costs a readlink each."""

import shutil
import struct
from pathlib import Path
from typing import NamedTuple

from tests.support.sidelog import compiled


class Fsyncs(NamedTuple):
    """Calls so far: on the database with its log, and on any other file or directory."""

    database: int
    files: int

    def since(self, before: "Fsyncs") -> "Fsyncs":
        return Fsyncs(self.database - before.database, self.files - before.files)


class FsyncCounter:
    """Counts in every process that is started with `environ` (but not in jobs: their environment is their own)."""

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise SystemExit("the benchmarks need a C compiler")
        library = compiled(Path(__file__).with_name("fsyncs.c"), compiler, "-shared", "-fPIC")
        self._file = directory / "fsyncs"
        self._file.write_bytes(bytes(16))
        self.environ = {"LD_PRELOAD": str(library), "BENCH_FSYNCS": str(self._file)}

    def read(self) -> Fsyncs:
        return Fsyncs(*struct.unpack("<QQ", self._file.read_bytes()))
