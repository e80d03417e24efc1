"""The launcher with scripted executors."""

import sys
from pathlib import Path

from cronward.launcher.__main__ import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], executor=[sys.executable, str(Path(__file__).with_name("fake_executor.py"))]))
