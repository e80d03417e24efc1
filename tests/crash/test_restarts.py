"""Restarts of both daemons, by TERM and by KILL, in the middle of a load of short runs.

The oracle is the log that the commands write themselves, held against the list of slots that were due. The suite does
a few; `make restarts N=1000` does N of each daemon.
"""

import os
from collections import Counter

import msgspec
import pytest

from cronward.protocol.outcome import Reason
from cronward.protocol.views import RunList
from tests.support.instance import Instance
from tests.support.sidelog import SideLog
from tests.support.waiting import wait_until

RESTARTS = int(os.environ.get("CRONWARD_TEST_RESTARTS", "8"))
PER_ROUND = 16
STAY_MS = 25
SPREAD_MS = 10
ROUNDS = (("scheduler", "TERM"), ("launcher", "TERM"), ("scheduler", "KILL"), ("launcher", "KILL"))
LOSABLE = {Reason.LAUNCH_LOST: ("scheduler KILL", "launcher KILL"), Reason.INTERRUPTED: ("launcher KILL",)}
"""What may become of a run that never began: windows 3 and 4, and the instant between a directory and its hand-over
in window 5. A run that began is never lost."""


class Tally(msgspec.Struct):
    """Counts over all rounds of one kind. `lost` runs never began and say so; `before_hand_over` are those of them
    that died with the launcher between their directory and their executor."""

    rounds: int = 0
    runs: int = 0
    lost: int = 0
    before_hand_over: int = 0
    repeated: int = 0
    interrupted: int = 0
    unexplained: int = 0


def test_restarts_under_load(instance: Instance) -> None:
    instance.start()
    tallies = {f"{daemon} {how}": Tally() for daemon, how in ROUNDS}
    for number in range(2 * RESTARTS):
        daemon, how = ROUNDS[number % len(ROUNDS)]
        labels, sidelog = load(instance, number)
        wait_until(lambda log=sidelog: starts(log).total() >= PER_ROUND // 4, "some have started", 60)  # type: ignore[misc]
        restart(instance, daemon, how)
        instance.wait_reconciled(60)
        settle(instance, labels)
        judge(instance, labels, sidelog, f"{daemon} {how}", tallies[f"{daemon} {how}"])
    report(tallies)
    assert sum(tally.rounds for tally in tallies.values()) == 2 * RESTARTS
    for kind, tally in tallies.items():
        assert (tally.repeated, tally.interrupted, tally.unexplained) == (0, 0, 0), (kind, tally)
        assert kind.endswith("KILL") or tally.lost == 0, (kind, tally)


def load(instance: Instance, number: int) -> tuple[set[str], SideLog]:
    """One-shots that become due one shortly after the other."""
    sidelog = SideLog(instance.root / f"sidelog-{number}")
    labels = [f"round{number}-{index}" for index in range(PER_ROUND)]
    due_ms = instance.soon_ms(100)
    for index, label in enumerate(labels):
        instance.add_at(sidelog.command(label, STAY_MS), due_ms + index * SPREAD_MS, {"name": label})
    return set(labels), sidelog


def restart(instance: Instance, name: str, how: str) -> None:
    daemon = instance.scheduler if name == "scheduler" else instance.launcher
    if how == "KILL":
        daemon.kill()
    else:
        assert daemon.terminate(60) == 0
    if name == "scheduler":
        instance.start_scheduler(deadline_s=60)
    else:
        instance.start_launcher(deadline_s=60)


def settle(instance: Instance, labels: set[str]) -> None:
    """Every slot of the round has become a run that is over."""
    wait_until(lambda: states(instance, labels).keys() == labels, "every slot has a finished run", 60, poll_s=0.02)
    instance.wait_idle()


def states(instance: Instance, labels: set[str]) -> dict[str, tuple[str, str | None]]:
    """State and reason of the round's finished runs, by label."""
    page = instance.client().call("cron.runs", RunList, {"scope": "all", "limit": 100})
    return {run.job_name: (run.state, run.reason) for run in page.entries if run.job_name in labels}


def starts(sidelog: SideLog) -> Counter[str]:
    return Counter(entry.label.removesuffix(":start") for entry in sidelog.entries() if entry.label.endswith(":start"))


def judge(instance: Instance, labels: set[str], sidelog: SideLog, kind: str, tally: Tally) -> None:
    """Holds what the commands wrote against what is recorded."""
    began, written = starts(sidelog), sidelog.entries()
    ended = Counter(entry.label.removesuffix(":end") for entry in written if entry.label.endswith(":end"))
    tally.rounds += 1
    tally.runs += len(labels)
    for label, (state, reason) in states(instance, labels).items():
        if began[label] > 1:
            tally.repeated += 1
        elif began[label] == ended[label] == 1 and state == "ok":
            continue
        elif began[label] == 1 and reason == Reason.INTERRUPTED:
            tally.interrupted += 1
        elif began[label] == 0 and reason is not None and kind in LOSABLE.get(Reason(reason), ()):
            tally.lost += 1
            tally.before_hand_over += reason == Reason.INTERRUPTED
        else:
            tally.unexplained += 1
            pytest.fail(f"{kind}: {label} began {began[label]}, ended {ended[label]}, recorded {state} {reason}")


def report(tallies: dict[str, Tally]) -> None:
    fields = Tally.__struct_fields__
    print("\n" + " " * 16 + "".join(f"{field:>18}" for field in fields))
    for kind, tally in tallies.items():
        print(f"{kind:16}" + "".join(f"{getattr(tally, field):>18}" for field in fields))
