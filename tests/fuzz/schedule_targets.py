"""Schedules as people write them: a slot to come, or a refusal that names the field."""

import msgspec

from cronward.protocol import job
from cronward.protocol.conversion import convert
from cronward.protocol.errors import InvalidRequest
from cronward.schedule import planner
from cronward.schedule.duration import parse_duration_ms
from tests.fuzz.mutation import Mutator
from tests.support.scheduler_bench import START_MS

EXPRESSIONS = (
    *("* * * * *", "*/15 2-4,7 1,L * MON-FRI", "0 0 29 2 *", "0 12 LW * ?", "@hourly", "H H(3-5) * * *"),
    *("30 5 4 1-12/2 5L", "0 0 0 1W * 1#2 2030", "59/15 23 31 JAN,dec sun", "0 0 * * 7", "5 4 * * 0-6 2026-2099/3"),
)
INSTANTS = ("2027-06-01T00:00:00Z", "1800000100000", "+012027-01-01", "2027-02-29", "2027-06-01T24:00:00.000+02:00")
ZONES = ("UTC", "Europe/Berlin", "America/Nuuk", "Africa/Casablanca", "Australia/Lord_Howe", "../../etc/passwd", "\0")
PAYLOAD = {"kind": "command", "argv": ["true"]}
ALPHABET = "0123456789*/-,?LWH#()@ \t\nMONsun+.:TZé\0"


class Schedules:
    """Everything that `cron.add` does with a schedule: settle, plan, show; the same again for what was settled."""

    def renew(self) -> None:
        """Caches are bounded."""

    def make(self, mutator: Mutator) -> bytes:
        choose = mutator.chance.choice
        cron: dict[str, object] = {"kind": "cron", "expr": choose(EXPRESSIONS), "tz": choose(ZONES)}
        at: dict[str, object] = {"kind": "at", "at": choose(INSTANTS)}
        every: dict[str, object] = {"kind": "every", "everyMs": choose((1, 60_000, 2**52)), "anchorMs": START_MS}
        raw = choose((cron, cron, at, every))
        for key in ("expr", "at", "tz"):
            text = raw.get(key)
            if (
                isinstance(text, str)
                and mutator.chance.random() < 0.8
                and (key != "tz" or mutator.chance.random() < 0.1)
            ):
                raw = raw | {key: mutator.text(text, ALPHABET)}
        return msgspec.json.encode(mutator.value(raw) if mutator.chance.random() < 0.1 else raw)

    def feed(self, data: bytes) -> None:
        raw = msgspec.json.decode(data)
        if isinstance(raw, dict):
            for text in raw.values():
                parse_duration_ms(str(text))
        try:
            schedule = convert({"name": "n", "payload": PAYLOAD, "schedule": raw}, job.Definition).schedule
            settled = planner.settle(schedule, job_id="job", now_ms=START_MS, default_tz="UTC")
        except InvalidRequest:
            return
        slots = [slot.at_ms for slot in planner.preview(settled, job_id="job", after_ms=START_MS, count=3)]
        assert slots == sorted(set(slots))
        assert all(slot > START_MS for slot in slots)

    def close(self) -> None:
        """Nothing is kept."""
