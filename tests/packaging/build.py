"""Builds the sdist and, from it, the wheel, and checks what is in them: `python -m tests.packaging.build DIRECTORY`."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("protocol", "schedule", "scheduler", "launcher", "executor", "cli")


def build(directory: Path) -> tuple[Path, Path]:
    """The sdist and the wheel. The wheel is built from the unpacked sdist: a checkout's symlinks play no part."""
    hatchling = [sys.executable, "-m", "hatchling", "build", "--directory", str(directory)]
    subprocess.run([*hatchling, "--target", "sdist"], cwd=REPOSITORY, check=True)
    (sdist,) = directory.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(directory / "unpacked", filter="data")
    (unpacked,) = (directory / "unpacked").iterdir()
    subprocess.run([*hatchling, "--target", "wheel"], cwd=unpacked, check=True)
    (wheel,) = directory.glob("*.whl")
    return sdist, wheel


def expected() -> set[str]:
    """Names in the wheel of every file of the six packages."""
    names = set()
    for package in PACKAGES:
        for folder, folders, files in os.walk(REPOSITORY / package):
            folders[:] = [name for name in folders if name != "__pycache__"]
            names |= {
                f"cronward/{(Path(folder) / name).relative_to(REPOSITORY)}"
                for name in files
                if not name.endswith(".pyc")
            }
    return names


def main() -> None:
    directory = Path(sys.argv[1])
    sdist, wheel = build(directory)
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = expected()
    problems = [f"missing: {name}" for name in sorted(wanted - found)]
    problems += [f"not ours: {name}" for name in sorted(found - wanted)]
    if not any(name.endswith(".sql") for name in found):
        problems.append("no .sql file")
    if problems:
        raise SystemExit(f"{wheel.name}:\n" + "\n".join(problems))
    print(f"{sdist.name} and {wheel.name}: {len(found)} files of {len(PACKAGES)} packages")


if __name__ == "__main__":
    main()
