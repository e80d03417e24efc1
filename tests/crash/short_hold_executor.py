"""An executor whose ten minutes with an unacknowledged outcome are over after a second and a half."""

import sys

from cronward.executor import lifecycle
from cronward.executor.__main__ import main

if __name__ == "__main__":
    vars(lifecycle)["OUTCOME_HOLD_MS"] = 1500
    sys.exit(main(sys.argv[1:]))
