"""A hundred thousand enabled jobs that are not due: what they cost to add, to start with, to keep and to ask for."""

import argparse
import random
import time

from cronward.protocol.views import JobView
from tests.bench.figures import BASE, finish, percentile, say
from tests.support.instance import Instance
from tests.support.processes import cpu_ms, memory_kib
from tests.support.sidelog import program
from tests.support.waiting import now_ms, wait_until

WINDOW = 200
IDLE_S = 10.0
WAKE_UPS = 40
WAKE_STEP_MS = 100
GETS = 2000
HOUR_MS = 3_600_000


def add_idle(instance: Instance, jobs: int) -> tuple[list[str], float]:
    """Daily cron jobs that are not due within two hours; their ids, and how many were added a second."""
    hour = now_ms() // HOUR_MS
    wanted = (
        instance.job(
            ["/bin/true"],
            {"kind": "cron", "expr": f"{n % 60} {(hour + 3 + n // 60 % 18) % 24} * * *", "tz": "UTC", "staggerMs": 0},
            fields={"name": f"idle {n}"},
        )
        for n in range(jobs)
    )
    begin = time.monotonic()
    ids = [job.id for job in instance.client().call_many("cron.add", JobView, wanted, window=WINDOW)]
    return ids, jobs / (time.monotonic() - begin)


def idle_cpu(instance: Instance) -> float:
    """CPU ms that the scheduler uses in a second in which nothing is due."""
    before, begin = cpu_ms(instance.scheduler.pid), time.monotonic()
    time.sleep(IDLE_S)
    return (cpu_ms(instance.scheduler.pid) - before) / (time.monotonic() - begin)


def wake_cost(instance: Instance, idle_ms_per_s: float) -> float:
    """CPU ms of the scheduler per one-shot that comes due alone, until it is recorded, without the idle part."""
    start_ms = now_ms() + 2000
    for n in range(WAKE_UPS):
        instance.add_at(list(program()), start_ms + n * WAKE_STEP_MS)
    wait_until(lambda: now_ms() >= start_ms - 100, "the first is about to be due")
    before, begin = cpu_ms(instance.scheduler.pid), time.monotonic()
    wait_until(lambda: now_ms() >= start_ms + WAKE_UPS * WAKE_STEP_MS, "the last was due", deadline_s=60, poll_s=0.1)
    used_ms = cpu_ms(instance.scheduler.pid) - before
    elapsed_s = time.monotonic() - begin
    instance.wait_idle()
    return (used_ms - idle_ms_per_s * elapsed_s) / WAKE_UPS


def get_latency(instance: Instance, ids: list[str]) -> list[float]:
    """Round trips of cron.get in ms, one at a time."""
    dice = random.Random(1)
    client = instance.client()
    taken = []
    for _ in range(GETS):
        job_id = dice.choice(ids)
        begin = time.perf_counter()
        client.call("cron.get", JobView, {"id": job_id})
        taken.append((time.perf_counter() - begin) * 1000)
    return taken


def wake_with_few() -> float:
    """The cost of a wake-up with 100 jobs."""
    with Instance({"CRONWARD_LOG_LEVEL": "warning"}, base=BASE) as instance:
        add_idle(instance.start(), 100)
        return wake_cost(instance, idle_cpu(instance))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    jobs = parser.parse_args().jobs
    few = wake_with_few()
    with Instance({"CRONWARD_LOG_LEVEL": "warning"}, base=BASE) as instance:
        instance.start()
        ids, add_per_s = add_idle(instance, jobs)
        say(f"{jobs} jobs added, {add_per_s:.0f} a second")
        assert instance.scheduler.terminate(deadline_s=60) == 0
        begin = time.monotonic()
        instance.start_scheduler(deadline_s=120)
        start_s = time.monotonic() - begin
        instance.wait_reconciled()
        say(f"scheduler started in {start_s:.2f} s")
        idle = idle_cpu(instance)
        many = wake_cost(instance, idle)
        say(f"wake-up {many:.2f} ms CPU ({few:.2f} with 100 jobs), idle {idle:.2f} ms/s")
        gets = get_latency(instance, ids)
        rss_mib = memory_kib(instance.scheduler.pid, "VmHWM") / 1024
        say(
            f"cron.get p50 {percentile(gets, 50):.2f} ms, p99 {percentile(gets, 99):.2f} ms; peak RSS {rss_mib:.0f} MiB"
        )
    finish(
        {
            "jobs": jobs,
            "add_per_s": add_per_s,
            "start_s": start_s,
            "rss_mib": rss_mib,
            "wake_ms": many,
            "wake_ms_at_100": few,
            "idle_cpu_ms_per_s": idle,
            "get_p99_ms": percentile(gets, 99),
        }
    )


if __name__ == "__main__":
    main()
