"""Reports of users of other schedulers, replayed on real processes: many jobs that were missed. The number in each
docstring names the report."""

import itertools
import time

import pytest

from cronward.protocol.views import JobList
from tests.support.instance import Instance
from tests.support.shifted_clock import ShiftedClock
from tests.support.waiting import wait_until


@pytest.mark.parametrize("was", ["stopped", "suspended"])
def test_clients_are_answered_while_sixty_overdue_jobs_run_within_capacity(instance: Instance, was: str) -> None:
    """B071, B080: two hours late, all of them wanted within seconds."""
    clock = ShiftedClock(instance.root / "shift")
    instance.environ |= clock.environ() | {
        "CRONWARD_CAPACITY_RUNS": "4",
        "CRONWARD_CATCH_UP_IMMEDIATE": "40",
        "CRONWARD_CATCH_UP_SPACING_S": "0.05",
    }
    instance.start()
    anchor_ms = instance.soon_ms(3_600_000)
    slots = [anchor_ms + number for number in range(60)]
    for slot_ms in slots:
        schedule = {"kind": "every", "everyMs": 86_400_000, "anchorMs": slot_ms}
        instance.add_command_job(instance.sidelog.command("job", 200), schedule)
    if was == "stopped":
        instance.scheduler.kill()
        instance.launcher.kill()
    clock.set(3 * 3600)
    if was == "stopped":
        instance.start_scheduler()
        instance.start_launcher()
    waited_s = []

    def all_have_run() -> bool:
        begun = time.monotonic()
        assert instance.client().call("cron.list", JobList, {"limit": 100}).total == 60
        waited_s.append(time.monotonic() - begun)
        return instance.sidelog.count("job:end") == 60

    wait_until(all_have_run, "all sixty have run", 60, poll_s=0.02)
    instance.wait_idle()
    assert max(waited_s) < 1
    assert sorted((run.slot_ms, run.state) for run in instance.runs()) == [(slot_ms, "ok") for slot_ms in slots]
    steps = [1 if entry.label == "job:start" else -1 for entry in sorted(instance.sidelog.entries())]
    assert max(itertools.accumulate(steps)) <= 4
