"""The launcher with scripted executors."""

import sys
from pathlib import Path

from cronward.launcher.__main__ import main
from cronward.launcher.spawner import ExecSpawner

if __name__ == "__main__":
    command = [sys.executable, str(Path(__file__).with_name("fake_executor.py"))]
    sys.exit(main(sys.argv[1:], lambda run_socket: ExecSpawner(run_socket, command)))
