"""What the machine does without a scheduler: a loop of posix_spawn and wait, also with two durable commits a run.

Run as a process of its own (`python -m tests.bench.bare RUNS DIRECTORY`), so that it waits for nobody else's children.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import apsw

from tests.support.sidelog import program

IN_FLIGHT = 8


class Bare(NamedTuple):
    """Runs per second, plain and with two commits each."""

    runs_per_s: float
    durable_runs_per_s: float


def measure(runs: int, directory: Path) -> Bare:
    """Both loops, in a new process; the database lies in `directory`."""
    repository = Path(__file__).parents[2]
    output = subprocess.run(
        [sys.executable, "-m", "tests.bench.bare", str(runs), str(directory)],
        cwd=repository,
        check=True,
        capture_output=True,
    ).stdout
    return Bare(*json.loads(output))


def plain(runs: int) -> float:
    argv = program()
    begin = time.monotonic()
    for number in range(runs):
        if number >= IN_FLIGHT:
            os.waitpid(-1, 0)
        os.posix_spawn(argv[0], argv, {})
    for _ in range(min(runs, IN_FLIGHT)):
        os.waitpid(-1, 0)
    return runs / (time.monotonic() - begin)


def durable(runs: int, database: Path) -> float:
    """Before each run its row is committed, after it its outcome: WAL, synchronous=FULL, one connection."""
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE run (pid INTEGER PRIMARY KEY, state TEXT, status INTEGER) STRICT")
    argv = program()
    numbers: dict[int, int] = {}

    def start(number: int) -> None:
        connection.execute("INSERT INTO run VALUES (?, 'active', NULL)", (number,))
        numbers[os.posix_spawn(argv[0], argv, {})] = number

    def finish() -> None:
        pid, status = os.waitpid(-1, 0)
        connection.execute("UPDATE run SET state = 'ok', status = ? WHERE pid = ?", (status, numbers.pop(pid)))

    begin = time.monotonic()
    for number in range(runs):
        if number >= IN_FLIGHT:
            finish()
        start(number)
    while numbers:
        finish()
    took_s = time.monotonic() - begin
    connection.close()
    return runs / took_s


def main() -> None:
    runs, directory = int(sys.argv[1]), Path(sys.argv[2])
    database = directory / f"bare-{os.getpid()}.db"
    print(json.dumps(Bare(plain(runs), durable(runs, database))))


if __name__ == "__main__":
    main()
