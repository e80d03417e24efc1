"""What planning costs, in CPU time. The figures are printed (`pytest -s`); the limits only catch a change of order."""

import random
import time

from cronward.protocol.config import CatchUpConfig
from cronward.protocol.job import At, Cron, Every, Schedule
from cronward.schedule import catch_up
from cronward.schedule.planner import next_slot_ms

JOBS = 100_000
NOW_MS = 1_772_000_000_000
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Tokyo", "Australia/Lord_Howe", "America/Sao_Paulo")


def mixed_cron(chance: random.Random) -> Cron:
    minute, hour = chance.randrange(60), chance.randrange(24)
    exprs = (
        "*/5 * * * *",
        "0 * * * *",
        f"{minute} {hour} * * *",
        f"{minute} {hour} * * 1-5",
        f"{minute} {hour} {chance.randint(1, 28)} * *",
        "H H * * *",
        "H H H * *",
        "0 9 L * *",
        "0 8 * * MON#1",
        "30 2 29 2 *",
    )
    return Cron(chance.choice(exprs), chance.choice(ZONES), 0)


def plan_all(label: str, schedules: list[Schedule]) -> float:
    began = time.process_time()
    for number, schedule in enumerate(schedules):
        assert next_slot_ms(schedule, job_id=f"job-{number}", after_ms=NOW_MS) is not None
    took = time.process_time() - began
    print(f"{label}: {len(schedules)} jobs in {took:.2f} s, {took / len(schedules) * 1e6:.1f} µs each")
    return took


def test_planning_a_hundred_thousand_jobs() -> None:
    chance = random.Random(1)
    crons: list[Schedule] = [mixed_cron(chance) for _ in range(JOBS)]
    assert plan_all("mixed cron, six zones, 40 % of them hashed or unique", crons) < 15
    same: list[Schedule] = [Cron("*/5 * * * *", "Europe/Berlin", 0)] * JOBS
    plan_all("one cron expression", same)
    every: list[Schedule] = [Every(60_000, 0)] * JOBS
    plan_all("every", every)
    plan_all("at", [At("2026-06-01T10:00:00.000Z")] * JOBS)


def test_catching_up_twenty_thousand_jobs_after_a_day() -> None:
    chance = random.Random(2)
    jobs = [mixed_cron(chance) for _ in range(20_000)]
    rules = catch_up.rules(CatchUpConfig(), None)
    before_ms = NOW_MS - 86_400_000
    began = time.process_time()
    for number, schedule in enumerate(jobs):
        job_id = f"job-{number}"
        oldest_ms = next_slot_ms(schedule, job_id=job_id, after_ms=before_ms)
        assert oldest_ms is not None
        if oldest_ms <= NOW_MS:
            assert catch_up.missed(schedule, rules, job_id=job_id, oldest_ms=oldest_ms, now_ms=NOW_MS).wanted_ms
    took = time.process_time() - began
    print(f"catch-up: {len(jobs)} jobs in {took:.2f} s, {took / len(jobs) * 1e6:.1f} µs each")
    assert took < 15
