"""A small disk of its own: a tmpfs in a private mount namespace, so that filling it hurts nobody else."""

import subprocess
from pathlib import Path
from typing import Self


class SmallDisk:
    """A tmpfs of `mib` MiB over `directory`, seen only by processes started with `prefix()`.

    The test looks and writes into it through `outside`. It exists as long as the holder process, which ends with its
    standard input, so nothing is left mounted whatever happens to the test. Needs root.
    """

    def __init__(self, directory: Path, mib: int) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        mount = f"mount -t tmpfs -o size={mib}m,mode=0700 small '{directory}' && echo mounted && exec cat"
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            raise RuntimeError("no tmpfs in a mount namespace: root is needed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prefix(self) -> list[str]:
        """Words to put before a command so that it runs in the namespace; the pid stays that of the command."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--wd=/"]

    def outside(self, path: Path) -> Path:
        """A path below the directory as the test can open it."""
        return Path(f"/proc/{self._holder.pid}/root") / path.relative_to("/")

    def fill(self) -> None:
        """Leaves no free byte."""
        with self.outside(self._filler).open("ab", buffering=0) as file:
            for size in (1024 * 1024, 4096, 1):
                try:
                    while file.write(b"\0" * size) == size:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        """Takes back what `fill` wrote."""
        self.outside(self._filler).unlink()

    def close(self) -> None:
        if self._holder.stdin is not None:
            self._holder.stdin.close()
        if self._holder.stdout is not None:
            self._holder.stdout.close()
        self._holder.wait(timeout=10)

    @property
    def _filler(self) -> Path:
        return self._directory / "filler"
