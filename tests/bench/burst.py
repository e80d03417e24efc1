"""Many commands due at one instant: how many complete, durable runs a second.

300 and 3,000 one-shots, concurrency 8, the command a tiny static program. The time counts from the due instant to the
commit of the last outcome, as the ledger has it. `bare` loops run before and after, on the same file system.
"""

import argparse
import contextlib

from cronward.protocol.views import JobView, RunView
from tests.bench.bare import Bare, measure
from tests.bench.figures import BASE, finish, say
from tests.bench.fsyncs import FsyncCounter, Fsyncs
from tests.support.installation import at
from tests.support.instance import Instance
from tests.support.sidelog import program
from tests.support.waiting import now_ms, wait_until

LEAD_MS = 1500
SETTLE_MS = 1000


def burst(runs: int, instance: Instance) -> tuple[float, Fsyncs]:
    """Runs per second, and the fsyncs that they cost."""
    counter = FsyncCounter(instance.root)
    instance.environ |= counter.environ
    instance.start()
    # At a pace of 1,000 a second all are added well before they are due.
    due_ms = now_ms() + LEAD_MS + SETTLE_MS + runs
    job = instance.job(list(program()), at(due_ms))
    for _ in instance.client().call_many("cron.add", JobView, [job] * runs, window=200):
        pass
    if now_ms() > due_ms - SETTLE_MS:
        raise SystemExit(f"adding {runs} jobs took too long for a burst of them")
    wait_until(lambda: now_ms() >= due_ms - 50, "the burst is about to begin", deadline_s=60)
    before = counter.read()
    wait_until(lambda: now_ms() >= due_ms, "the burst begins")
    # Seldom asked, so that asking does not count.
    wait_until(lambda: finished(instance, runs), f"{runs} runs are over", deadline_s=120, poll_s=0.25)
    fsyncs = counter.read().since(before)
    found = instance.runs()
    check(found, runs)
    return runs / ((max(run.ts for run in found) - due_ms) / 1000), fsyncs


def finished(instance: Instance, runs: int) -> bool:
    status = instance.status(timeout_s=30)
    return status.active == 0 and status.queued == 0 and status.jobs_enabled == 0


def check(found: list[RunView], runs: int) -> None:
    """A benchmark of runs that went wrong measures nothing."""
    wrong = [run for run in found if run.state != "ok"]
    if wrong or len(found) != runs or len({run.job_id for run in found}) != runs:
        raise SystemExit(f"{len(found)} of {runs} runs, {len(wrong)} not ok: {wrong[:1]}")


def report(runs: int, per_s: float, bare: Bare, fsyncs: Fsyncs) -> None:
    say(
        f"{runs} due at once: {per_s:.0f} durable runs/s; bare {bare.runs_per_s:.0f}/s,"
        f" bare durable {bare.durable_runs_per_s:.0f}/s (ratio {per_s / bare.durable_runs_per_s:.2f});"
        f" fsyncs per run: database {fsyncs.database / runs:.2f}, files {fsyncs.files / runs:.2f}"
    )


def side_by_side(runs: int, instance: Instance) -> tuple[float, Bare, Fsyncs]:
    """The burst between two measurements of the bare loops, of which the mean counts."""
    before = measure(runs, instance.root)
    per_s, fsyncs = burst(runs, instance)
    instance.stop()
    after = measure(runs, instance.root)
    bare = Bare(*((one + other) / 2 for one, other in zip(before, after, strict=True)))
    report(runs, per_s, bare, fsyncs)
    return per_s, bare, fsyncs


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.burst", description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[300, 3000], help="sizes; the JSON line is of the last")
    with contextlib.ExitStack() as installations:
        for runs in parser.parse_args().runs:
            settings = {"CRONWARD_CAPACITY_RUNS": "8", "CRONWARD_LOG_LEVEL": "warning"}
            instance = installations.enter_context(Instance(settings, base=BASE))
            per_s, bare, fsyncs = side_by_side(runs, instance)
    finish(
        {
            "runs": runs,
            "runs_per_s": per_s,
            "bare_per_s": bare.runs_per_s,
            "bare_durable_per_s": bare.durable_runs_per_s,
            "ratio_durable": per_s / bare.durable_runs_per_s,
            "fsyncs_per_run": fsyncs.database / runs,
            "file_fsyncs_per_run": fsyncs.files / runs,
        }
    )


if __name__ == "__main__":
    main()
