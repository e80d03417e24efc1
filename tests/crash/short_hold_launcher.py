"""The launcher, with executors that hold an unacknowledged outcome for a moment instead of ten minutes."""

import sys
from pathlib import Path

from cronward.launcher.__main__ import main
from cronward.launcher.spawner import ExecSpawner

if __name__ == "__main__":
    command = [sys.executable, str(Path(__file__).with_name("short_hold_executor.py"))]
    sys.exit(main(sys.argv[1:], lambda run_socket: ExecSpawner(run_socket, command)))
