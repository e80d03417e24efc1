"""`python -m tests.simulation`: many seeds, each a machine of its own with the real scheduler on it.

Prints a line for each seed that broke an invariant, with the end of its trace, and a summary. The same seed always
does the same: `--seed N --seeds 1` repeats it.
"""

import argparse
import sys
from multiprocessing import get_context

from tests.simulation.checkers.every import every_checker
from tests.simulation.support.scenario import Scenario
from tests.simulation.support.simulation import Result, simulate

TAIL_LINES = 60


def main() -> int:
    arguments = _arguments()
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    scenarios = [Scenario(seed, jobs=arguments.jobs, days=arguments.days) for seed in seeds]
    broken = tasks = 0
    with get_context("fork").Pool(arguments.processes) as pool:
        for done, result in enumerate(pool.imap_unordered(one, scenarios), 1):
            tasks += result.tasks
            if result.broken is not None:
                broken += 1
                print(report(result), flush=True)
            if done % 50 == 0 or done == len(scenarios):
                print(f"{done} seeds, {tasks} runs, {broken} broken", flush=True)
    return 1 if broken else 0


def one(scenario: Scenario) -> Result:
    """One seed, watched by every checker."""
    return simulate(scenario, every_checker())


def report(result: Result) -> str:
    """What broke, and what came before."""
    return "\n".join([f"seed {result.seed}: {result.broken}", *result.tail[-TAIL_LINES:]])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the first seed")
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many")
    parser.add_argument("--jobs", type=int, default=200, metavar="N")
    parser.add_argument("--days", type=float, default=30, metavar="N", help="a quiet day comes after them")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
