"""What one simulation consists of, all of it drawn from one seed."""

from random import Random

import msgspec

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1000, 60_000, 3_600_000, 86_400_000
FIRST_START_MS = 1_767_225_600_000
"""2026-01-01T00:00Z; a simulation starts somewhere in the year that follows."""

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Santiago")


class Scenario(msgspec.Struct, frozen=True):
    """Rates are events per day; chances are per message, run or commit. Everything else comes from the seed."""

    seed: int
    jobs: int = 200
    days: float = 30
    capacity: int | None = None
    scheduler_crashes: float = 0.7
    launcher_crashes: float = 0.5
    launcher_leaves: float = 0.2
    launcher_stalls: float = 0.3
    reboots: float = 0.05
    clock_steps: float = 0.2
    suspends: float = 0.1
    pauses: float = 0.1
    edits_per_job: float = 0.03
    loss: float = 0.001
    repetition: float = 0.002
    commit_crash: float = 0.0005
    executor_crash: float = 0.01
    refusal: float = 0.003

    def random(self, part: str) -> Random:
        """A source for one part, so that a change in one leaves the others as they were."""
        return Random(f"{self.seed}/{part}")

    @property
    def start_ms(self) -> int:
        return FIRST_START_MS + self.random("start").randrange(365 * DAY_MS)

    @property
    def runs_at_once(self) -> int:
        return self.capacity or self.random("capacity").choice((1, 2, 4, 8, 16, 40))


def draw_schedule(random: Random, now_ms: int) -> dict[str, object]:
    """Mostly daily and weekly work at round times, so that many jobs are due at one moment."""
    hour, minute = random.choice((0, 0, 2, 2, 3, 9, 12, 23)), random.choice((0, 0, 0, 15, 30, 59))
    tz = random.choice(ZONES)
    match random.choices(
        ("daily", "weekly", "monthly", "hourly", "minutes", "every", "short", "at"), (36, 22, 9, 0.8, 0.1, 20, 0.2, 12)
    )[0]:
        case "daily":
            return {"kind": "cron", "expr": f"{minute} {hour} * * *", "tz": tz}
        case "weekly":
            return {"kind": "cron", "expr": f"{minute} {hour} * * {random.randrange(7)}", "tz": tz}
        case "monthly":
            return {"kind": "cron", "expr": f"{minute} {hour} {random.choice(('1', '15', 'L'))} * *", "tz": tz}
        case "hourly":
            return {"kind": "cron", "expr": f"{random.choice((0, 30))} * * * *", "tz": tz}
        case "minutes":
            return {"kind": "cron", "expr": "*/20 * * * *", "tz": tz}
        case "every":
            return {"kind": "every", "everyMs": random.choice((12, 24, 36, 72, 168)) * HOUR_MS}
        case "short":
            return {"kind": "every", "everyMs": random.choice((20, 45, 90)) * MINUTE_MS}
        case _:
            return {"kind": "at", "at": str(now_ms + random.randrange(1, 20 * DAY_MS))}


def draw_payload(random: Random) -> dict[str, object]:
    """The words say what the simulated executor does: how long, and how often of a hundred times it fails."""
    typical_ms = round(10 ** random.uniform(2, 5.5)) if random.random() < 0.97 else random.randrange(6 * HOUR_MS)
    failing = random.choices((0, 5, 50, 100), (70, 20, 6, 4))[0]
    return {"kind": "command", "argv": ["task", str(typical_ms), str(failing)]}


def draw_rules(random: Random) -> dict[str, object]:
    """Retries and catch-up of a job's own."""
    policy = random.choice(("none", "latest", "all"))
    return {
        "catchUp": {"policy": policy, "maxAgeSeconds": random.choice((0, 3600, 86_400))},
        "retry": {"preset": random.choice(("openclaw", "goclaw")), "disableAfter": random.choice((0, 3, 10))},
    }
