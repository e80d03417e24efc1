"""SIGKILL of either daemon, or both, while ten commands run: all end `ok`, none runs twice, none is interrupted."""

import os
from collections import Counter

import pytest

from tests.support.instance import Instance
from tests.support.waiting import now_ms, wait_until

COMMANDS = 10
STAY_MS = 2500
ABSENCE_S = float(os.environ.get("CRONWARD_TEST_ABSENCE_S", "12"))
"""Longer than any silence that the scheduler notices (launcher_link.SILENCE_MS); `make soak` waits a minute."""


@pytest.fixture
def busy(instance: Instance) -> Instance:
    """Ten commands that run at once."""
    instance.environ["CRONWARD_CAPACITY_RUNS"] = str(COMMANDS)
    instance.start()
    due_ms = instance.soon_ms()
    for number in range(COMMANDS):
        instance.add_at(instance.sidelog.command(f"job{number}", STAY_MS), due_ms, {"deleteAfterRun": False})
    wait_until(lambda: started(instance) == COMMANDS, "all commands have started")
    return instance


def started(instance: Instance) -> int:
    return sum(entry.label.endswith(":start") for entry in instance.sidelog.entries())


def assert_all_ran_once(instance: Instance) -> None:
    instance.wait_reconciled()
    instance.wait_idle()
    written = Counter(entry.label for entry in instance.sidelog.entries())
    assert written == {f"job{number}:{part}": 1 for number in range(COMMANDS) for part in ("start", "end")}
    runs = instance.runs()
    assert [run.state for run in runs] == ["ok"] * COMMANDS
    assert {run.late_outcome for run in runs} == {None}
    assert not instance.events("notice.sent")


def test_scheduler_killed(busy: Instance) -> None:
    busy.scheduler.kill()
    busy.start_scheduler()
    assert_all_ran_once(busy)


def test_launcher_killed(busy: Instance) -> None:
    busy.launcher.kill()
    busy.start_launcher()
    assert_all_ran_once(busy)


def test_both_killed(busy: Instance) -> None:
    busy.scheduler.kill()
    busy.launcher.kill()
    busy.start_scheduler()
    busy.start_launcher()
    assert_all_ran_once(busy)


def test_both_killed_and_commands_end_before_anybody_is_back(busy: Instance) -> None:
    busy.scheduler.kill()
    busy.launcher.kill()
    wait_until(lambda: len(busy.sidelog.entries()) == 2 * COMMANDS, "all commands have ended")
    busy.start_scheduler()
    busy.start_launcher()
    assert_all_ran_once(busy)


def test_executors_report_to_the_new_scheduler_without_a_launcher(busy: Instance) -> None:
    busy.scheduler.kill()
    busy.launcher.kill()
    busy.start_scheduler()
    wait_until(lambda: all(run.state == "ok" for run in busy.runs(live=True)), "executors report by themselves")
    busy.start_launcher()
    assert_all_ran_once(busy)


def test_nothing_is_settled_by_waiting_for_the_launcher(busy: Instance) -> None:
    executors = [pid for pid in busy.processes() if pid not in (busy.scheduler.pid, busy.launcher.pid)]
    busy.scheduler.kill()
    busy.launcher.kill()
    for pid in executors:
        busy.kill(pid)
    busy.start_scheduler()
    assert {run.state for run in busy.runs(live=True)} == {"active"}
    assert_nothing_changes_for(busy, ABSENCE_S)
    assert all(run.unverified_since_ms for run in busy.runs(live=True))
    busy.start_launcher()
    busy.wait_idle()
    assert {(run.state, run.reason) for run in busy.runs()} == {("error", "interrupted")}
    wait_until(lambda: len(busy.events("notice.sent")) == 1, "one notice names the interrupted runs")
    assert len(busy.status().notices[0].runs) == COMMANDS
    assert started(busy) == COMMANDS


def assert_nothing_changes_for(instance: Instance, seconds: float) -> None:
    """The ledger stays as it is for that long."""
    before = [(run.run_id, run.state) for run in instance.runs(live=True)]
    end_ms = now_ms() + int(seconds * 1000)

    def over() -> bool:
        assert [(run.run_id, run.state) for run in instance.runs(live=True)] == before
        return now_ms() >= end_ms

    wait_until(over, "the time is over", seconds + 5, poll_s=0.2)
