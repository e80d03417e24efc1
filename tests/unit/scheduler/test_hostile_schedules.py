"""Hostile definitions are refused quickly, with the field named; and a request may not cost the loop its time."""

import time

import pytest

from tests.support.following import Followed
from tests.support.scheduler_bench import Bench, Refusal

EVERY = {"kind": "every", "everyMs": 60_000}


def cron(expr: str, tz: str = "UTC") -> dict[str, object]:
    return {"kind": "cron", "expr": expr, "tz": tz}


HOSTILE: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("schedule.expr", cron("* " * 20_000), {}),
    ("schedule.expr", cron("1-2-3-4/5/6 * * * *"), {}),
    ("schedule.expr", cron("((1-5)) * * * *"), {}),
    ("schedule.expr", cron("H(H(1-5)-9) * * * *"), {}),
    ("schedule.expr", cron("0 0 30 2 *"), {}),
    ("schedule.expr", cron("0 0 31 2,4,6,9,11 *"), {}),
    ("schedule.expr", cron("0 0 0 29 2 * 2097-2099"), {}),
    ("schedule.expr", cron("0 0 0 1 1 * 1970-2000"), {}),
    ("schedule.expr", cron("0 0 0 1 1 * 9999"), {}),
    ("schedule.tz", cron("* * * * *", "Mars/Base"), {}),
    ("schedule.tz", cron("* * * * *", "../../etc/passwd"), {}),
    ("schedule.tz", cron("* * * * *", "A" * 40_000), {}),
    ("schedule.at", {"kind": "at", "at": "+099999-01-01"}, {}),
    ("schedule.at", {"kind": "at", "at": "9" * 40_000}, {}),
    ("schedule.at", {"kind": "at", "at": "12026-01-01T00:00:00Z"}, {}),
    ("schedule.everyMs", {"kind": "every", "everyMs": 0}, {}),
    ("schedule.everyMs", {"kind": "every", "everyMs": 10**18}, {}),
    ("schedule.anchorMs", {"kind": "every", "everyMs": 1, "anchorMs": -1}, {}),
    ("pacing.min", EVERY, {"pacing": {"min": "1h" * 20_000}}),
    ("pacing.max", EVERY, {"pacing": {"max": "9" * 40_000 + "d"}}),
    ("pacing", EVERY, {"pacing": {}}),
    ("retry.delaysSeconds", EVERY, {"retry": {"delaysSeconds": [1] * 10_000}}),
    ("retry.backoffSeconds", EVERY, {"retry": {"backoffSeconds": []}}),
    ("retry.jitter", EVERY, {"retry": {"jitter": 2}}),
    ("retry.preset", EVERY, {"retry": {"preset": "x" * 40_000}}),
    ("retry.transient[0]", EVERY, {"retry": {"transient": ["bad luck"]}}),
    ("catchUp.maxRuns", EVERY, {"catchUp": {"maxRuns": 10**9}}),
]


@pytest.mark.parametrize(("field", "schedule", "more"), HOSTILE)
def test_it_is_refused_by_its_field_and_at_once(
    ready: Bench, field: str, schedule: dict[str, object], more: dict[str, object]
) -> None:
    with pytest.raises(Refusal):
        Followed(ready, cron("0 0 0 1 1 * 1970"))  # everything is loaded
    took_s = []
    for _ in range(3):  # the least of them, since other work on the processor costs CPU time, too
        began_s = time.process_time()
        with pytest.raises(Refusal) as refused:
            Followed(ready, schedule, **more)
        took_s.append(time.process_time() - began_s)
    assert min(took_s) < 0.05
    assert refused.value.error.details["field"] == field
    assert len(refused.value.error.message) < 1_000
