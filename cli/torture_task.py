"""The command that torture's jobs run: it writes down itself that it began and that it ended.

    python -I -S torture_task.py FILE LABEL MS

appends "<epoch ns> LABEL:start <run id>" to FILE, waits MS milliseconds, appends the same with LABEL:end. Each line is
one write and on the disk before anything follows. Imports nothing of Cronward: it is the witness.
"""

import os
import select
import sys
import time


def append(file: str, label: str) -> None:
    """One line of the side log."""
    line = f"{time.time_ns()} {label} {os.environ.get('CRONWARD_RUN_ID') or '-'}\n"
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.write(fd, line.encode())
    os.fsync(fd)
    os.close(fd)


def main(file: str, label: str, stay_ms: str) -> None:
    append(file, f"{label}:start")
    select.select([], [], [], int(stay_ms) / 1000)
    append(file, f"{label}:end")


if __name__ == "__main__":
    main(*sys.argv[1:])
