"""`python -m tests.fuzz [--seconds S] [--seed N] [TARGET …]`: each target for that long, one per processor at a time.

Exit status 1 if a target broke; its seed and input are printed. The same seed makes the same inputs.
"""

import argparse
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.engine import Broken, fuzz
from tests.fuzz.targets import TARGETS


class _Arguments(argparse.Namespace):
    seconds: float
    seed: int | None
    targets: list[str]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; default: all")
    arguments = parser.parse_args(argv, _Arguments())
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    names = arguments.targets or list(TARGETS)
    print(f"seed {seed}, {len(names)} targets, {arguments.seconds:g} s each", flush=True)
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        broken = sum(processes.map(_one, names, [arguments.seconds] * len(names), [seed] * len(names)))
    return 1 if broken else 0


def _one(name: str, seconds: float, seed: int) -> bool:
    """Whether the target broke."""
    target = TARGETS[name]()
    try:
        report = fuzz(name, target, seconds, seed)
    except Broken as error:
        print(f"BROKEN {error}", flush=True)
        return True
    finally:
        target.close()
    print(
        f"{name:22} {report.inputs:>9} inputs, slowest {report.slowest_ms:5.1f} ms CPU, grown {report.grown_kib:6} KiB",
        flush=True,
    )
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
