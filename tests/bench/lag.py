"""An idle system: from the slot's instant to the first instruction of the command.

One-shots at irregular instants, about one a second; between two of them the same program is started bare, by a loop
that sleeps until an instant and spawns. The program reads the clock before anything else.
"""

import argparse
import os
import random
import time

from tests.bench.figures import BASE, finish, percentile, say
from tests.support.instance import Instance
from tests.support.waiting import now_ms

STEP_MS = 1000
JITTER_MS = 350
LEAD_MS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lag", description=__doc__)
    parser.add_argument("--samples", type=int, default=60)
    samples = parser.parse_args().samples
    with Instance({"CRONWARD_LOG_LEVEL": "warning"}, base=BASE) as instance:
        ours, bare = measure(instance.start(), samples)
    p50, p99, bare_p50 = percentile(ours, 50), percentile(ours, 99), percentile(bare, 50)
    say(f"{samples} slots: p50 {p50:.2f} ms, p99 {p99:.2f} ms, worst {max(ours):.2f} ms; bare p50 {bare_p50:.2f} ms")
    finish({"samples": samples, "p50_ms": p50, "p99_ms": p99, "bare_p50_ms": bare_p50})


def measure(instance: Instance, samples: int) -> tuple[list[float], list[float]]:
    """Lags in ms: of the scheduler's runs, and of the bare ones half a step after each."""
    dice = random.Random(samples)
    start_ms = now_ms() + LEAD_MS
    due_ms = {f"slot{n}": start_ms + n * STEP_MS + dice.randrange(JITTER_MS) for n in range(samples)}
    bare_ms = {f"bare{n}": start_ms + n * STEP_MS + STEP_MS // 2 + dice.randrange(JITTER_MS) for n in range(samples)}
    for label, at_ms in due_ms.items():
        instance.add_at(instance.sidelog.command(label), at_ms)
    for label, at_ms in bare_ms.items():
        spawn_at(at_ms, instance.sidelog.command(label))
    instance.wait_idle()
    begun_ns = {entry.label: entry.ns for entry in instance.sidelog.entries()}
    missing = [label for label in (*due_ms, *bare_ms) if label not in begun_ns]
    if missing:
        raise SystemExit(f"did not run: {missing}")
    return (
        [begun_ns[label] / 1e6 - at_ms for label, at_ms in due_ms.items()],
        [begun_ns[label] / 1e6 - at_ms for label, at_ms in bare_ms.items()],
    )


def spawn_at(at_ms: int, argv: list[str]) -> None:
    time.sleep(max(0.0, at_ms / 1000 - time.time()))
    os.waitpid(os.posix_spawn(argv[0], argv, {}), 0)


if __name__ == "__main__":
    main()
