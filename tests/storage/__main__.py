"""`python -m tests.storage`: every operation of every kind of transaction under every fault, as a table."""

import argparse
import logging
import multiprocessing
import shutil
import sys
import traceback

import msgspec

from tests.storage.matrix import every_case
from tests.storage.support.case import make_base, operations, run_case, scratch
from tests.storage.support.kinds import KINDS

PROCESSES = 2


class Row(msgspec.Struct, frozen=True):
    """What one kind came to."""

    kind: str
    operations: int
    cases: int
    failures: list[str]


def main() -> int:
    """0 if every promise was kept in every case."""
    parser = argparse.ArgumentParser(prog="python -m tests.storage", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what is torn")
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], help="only this one")
    arguments = parser.parse_args()
    chosen = [number for number, kind in enumerate(KINDS) if arguments.kind in (None, kind.name)]
    print(f"seed {arguments.seed}\n\n| kind | I/O operations | cases | failures |\n|---|---|---|---|", flush=True)
    rows = []
    with multiprocessing.Pool(PROCESSES) as pool:
        for row in pool.imap(_row, [(number, arguments.seed) for number in chosen], chunksize=1):
            print(f"| {row.kind} | {row.operations} | {row.cases} | {len(row.failures)} |", flush=True)
            rows.append(row)
    cases, failures = sum(row.cases for row in rows), [text for row in rows for text in row.failures]
    print(f"| all | {sum(row.operations for row in rows)} | {cases} | {len(failures)} |\n")
    print("\n".join(failures))
    return 1 if failures or not cases else 0


def _row(task: tuple[int, int]) -> Row:
    number, seed = task
    kind = KINDS[number]
    logging.disable(logging.CRITICAL)
    directory = scratch()
    base, root = directory / "base", directory / "case"
    make_base(base)
    found = operations(kind, base, root)
    cases = every_case(kind, found, seed)
    failures = []
    for case in cases:
        try:
            wrong = run_case(case, base, root)
        except Exception:
            wrong = [traceback.format_exc(limit=-4)]
        failures += [f"{case}: {problem}" for problem in wrong]
    shutil.rmtree(directory)
    return Row(kind.name, len(found), len(cases), failures)


if __name__ == "__main__":
    sys.exit(main())
