"""The machine as it is after a restart: another boot id, for processes started with `prefix()` only."""

import subprocess
import uuid
from pathlib import Path
from typing import Self


class OtherBoot:
    """A mount namespace in which /proc shows a new boot id; it exists as long as its holder. Needs root.

    `file` is where the id is kept; nothing may be there yet.
    """

    def __init__(self, file: Path) -> None:
        file.write_text(f"{uuid.uuid4()}\n")
        mount = f"mount --bind '{file}' /proc/sys/kernel/random/boot_id && echo mounted && exec cat"
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            raise RuntimeError("no bind mount in a mount namespace: root is needed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._holder.stdin, self._holder.stdout):
            if stream is not None:
                stream.close()
        self._holder.wait(timeout=10)

    def prefix(self) -> list[str]:
        """Words to put before a command so that it runs after the restart; the pid stays that of the command."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--wd=/"]
