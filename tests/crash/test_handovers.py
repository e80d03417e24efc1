"""SIGTERM to each daemon in turn under a load of short runs: nothing lost, nothing repeated, every run accounted for.

CRONWARD_TEST_HANDOVERS sets how often each is stopped; the suite does it a few times, `make soak` fifty.
"""

import os
from collections import Counter

from tests.support.instance import Instance
from tests.support.waiting import wait_until

TIMES = int(os.environ.get("CRONWARD_TEST_HANDOVERS", "6"))
PER_ROUND = 24
STAY_MS = 15


def test_each_daemon_is_stopped_in_turn_under_load(instance: Instance) -> None:
    instance.start()
    added: list[str] = []
    for turn in range(2 * TIMES):
        due_ms = instance.soon_ms(100)
        for _ in range(PER_ROUND):
            label = f"job{len(added)}"
            instance.add_at(instance.sidelog.command(label, STAY_MS), due_ms, {"deleteAfterRun": False})
            added.append(label)
        some = len(added) - PER_ROUND // 2
        wait_until(lambda some=some: written(instance) >= some, "half of the round has started")  # type: ignore[misc]
        restart(instance, "scheduler" if turn % 2 else "launcher")
    instance.wait_reconciled()
    wait_until(lambda: written(instance) >= len(added), "every job has run", 60)
    instance.wait_idle()
    ran = Counter(entry.label for entry in instance.sidelog.entries())
    assert ran == {f"{label}:{part}": 1 for label in added for part in ("start", "end")}
    runs = instance.runs()
    assert len(runs) == len(added)
    assert Counter((run.state, run.reason) for run in runs) == {("ok", None): len(added)}
    assert not instance.events("notice.sent")


def restart(instance: Instance, name: str) -> None:
    daemon = instance.scheduler if name == "scheduler" else instance.launcher
    assert daemon.terminate() == 0
    if name == "scheduler":
        instance.start_scheduler()
    else:
        instance.start_launcher()
    instance.wait_reconciled()


def written(instance: Instance) -> int:
    return sum(entry.label.endswith(":start") for entry in instance.sidelog.entries())
