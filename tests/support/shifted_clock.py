"""A wall clock that a test sets forward and back under running processes."""

import shutil
import struct
from pathlib import Path

import pytest

from tests.support.sidelog import compiled


class ShiftedClock:
    """The clock of every process that is started with `environ()`; `file` holds its shift. Needs a C compiler."""

    def __init__(self, file: Path) -> None:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            pytest.skip("needs a C compiler")
        self._library = compiled(Path(__file__).with_name("shifted_clock.c"), compiler, "-shared", "-fPIC", "-ldl")
        self._file = file
        self._file.write_bytes(struct.pack("l", 0))

    def environ(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SHIFTED_CLOCK": str(self._file)}

    def set(self, shift_s: int) -> None:
        """From now on the clock shows the kernel's time plus `shift_s`."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("l", shift_s))
