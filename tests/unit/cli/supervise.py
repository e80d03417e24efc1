"""`cronward up` with other programs in place of its daemons: python supervise.py SCHEDULER LAUNCHER (shell texts).

A script gets the descriptor for its readiness as $READY. PATIENCE_MS says how soon one that does not end is killed.
"""

import os
import sys

from cronward.cli import daemon
from cronward.cli.console import Console
from cronward.cli.main import Options
from cronward.cli.session import Session
from cronward.cli.up import Up


def shell(text: str) -> list[str]:
    return ["bash", "-c", f"READY=$2; {text}", "daemon"]


def main() -> int:
    scheduler, launcher = sys.argv[1:]
    daemon.STOP_PATIENCE_MS = int(os.environ.get("PATIENCE_MS", "15000"))
    session = Session(Options(None, None, None), as_json=True)
    console = Console(session.clock, as_json=True)
    try:
        return Up(session, console, {"scheduler": shell(scheduler), "launcher": shell(launcher)}).run()
    finally:
        console.close()
        session.close()


if __name__ == "__main__":
    sys.exit(main())
