"""`python -m cronward.scheduler serve|check|restore`: the daemon, and what is done to its database while it is off."""

import argparse
import gc
import os
import sys

from cronward.protocol import exits, failpoints, log, paths
from cronward.protocol.clock import SystemClock
from cronward.protocol.errors import ConfigError, CronwardError, StartupError
from cronward.protocol.notify import Notifier


def main() -> int:
    """Exit code, one of `exits`. Errors are one line on standard error."""
    arguments = _arguments()
    clock = SystemClock()
    log.setup("scheduler", "info", clock)
    try:
        armed = failpoints.arm(os.environ)
        if armed:
            log.warning("failpoints.armed", "failpoints are armed", names=armed)
        where = paths.resolve(os.environ, arguments.state, arguments.runtime)
        if arguments.action == "serve":
            return _serve(arguments, where, clock)
        from cronward.scheduler import offline

        if arguments.action == "check":
            return offline.check(where, arguments.file)
        return offline.restore(where, arguments.file)
    except StartupError as error:
        log.error("scheduler.cannot_start", error.message, code=str(error.code))
        return error.exit_code
    except ConfigError as error:
        log.error("scheduler.cannot_start", error.message, code=str(error.code))
        return exits.CONFIG
    except CronwardError as error:
        log.error("scheduler.failed", error.message, code=str(error.code))
        return exits.ERROR
    except Exception:
        log.error("scheduler.bug", "the scheduler met a bug and ends; the next start recovers", exc_info=True)
        return exits.INTERNAL


def _serve(arguments: argparse.Namespace, where: paths.Paths, clock: SystemClock) -> int:
    from cronward.scheduler.service import Service, load_settings

    settings = load_settings(os.environ, arguments.config)
    log.set_level(settings.config.log_level)
    service = Service(where, settings, clock, Notifier(os.environ, arguments.ready_fd))
    gc.collect()
    gc.freeze()
    return service.run()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cronward-scheduler", description=__doc__)
    parser.add_argument("action", choices=("serve", "check", "restore"))
    parser.add_argument("file", nargs="?", help="check: a backup instead of the live database; restore: the backup")
    parser.add_argument("--state", metavar="DIR")
    parser.add_argument("--runtime", metavar="DIR")
    parser.add_argument("--config", metavar="FILE")
    parser.add_argument("--ready-fd", type=int, metavar="N", help="gets a newline when the sockets are bound")
    arguments = parser.parse_args()
    if arguments.action == "restore" and arguments.file is None:
        parser.error("restore needs a file")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
