"""Mount namespaces of a test's own: what is mounted there is seen only by processes started with `prefix()`."""

import subprocess
import uuid
from pathlib import Path
from typing import Self


class MountNamespace:
    """One namespace, with what the shell command `mount` mounts in it. Needs root.

    It exists as long as its holder process, which ends with its standard input, so nothing is left mounted whatever
    happens to the test.
    """

    def __init__(self, mount: str) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"{mount} && echo mounted && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            raise RuntimeError(f"root is needed for: {mount}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prefix(self) -> list[str]:
        """Words to put before a command so that it runs in the namespace; the pid stays that of the command."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--wd=/"]

    def outside(self, path: Path) -> Path:
        """A path of the namespace as the test can open it."""
        return Path(f"/proc/{self._holder.pid}/root") / path.relative_to("/")

    def close(self) -> None:
        for stream in (self._holder.stdin, self._holder.stdout):
            if stream is not None:
                stream.close()
        self._holder.wait(timeout=10)


class SmallDisk(MountNamespace):
    """A tmpfs of `mib` MiB over `directory`, so that filling it hurts nobody else."""

    def __init__(self, directory: Path, mib: int) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._filler = directory / "filler"
        super().__init__(f"mount -t tmpfs -o size={mib}m,mode=0700 small '{directory}'")

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


class OtherBoot(MountNamespace):
    """The machine as it is after a restart: /proc shows another boot id. `file` is where the id is kept; nothing may
    be there yet."""

    def __init__(self, file: Path) -> None:
        file.write_text(f"{uuid.uuid4()}\n")
        super().__init__(f"mount --bind '{file}' /proc/sys/kernel/random/boot_id")
