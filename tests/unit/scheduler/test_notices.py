"""Notices: one for each recovery, told when it is complete, kept until it was told."""

import pytest

from cronward.protocol import failpoints, launch
from cronward.protocol.launch import Gone, RunState
from tests.support.scheduler_bench import Bench


def interrupted(bench: Bench, count: int = 3) -> list[str]:
    """Runs that a crash left without a trace."""
    jobs = [bench.add() for _ in range(count)]
    for job in jobs:
        bench.run_now(job)
    bench.turns(4)
    return [sent.run for sent in bench.launches]


def test_a_recovery_is_told_once_with_all_its_runs(ready: Bench) -> None:
    runs = interrupted(ready)
    ready.crash()
    ready.reconcile()
    for _ in range(5):
        ready.turn(1000)
    (notice,) = ready.notices()
    assert sorted(notice.runs) == sorted(runs)
    assert "3 runs" in notice.text
    assert ready.sql("SELECT count(*) FROM notices WHERE sent_ms IS NULL") == [(0,)]
    ready.crash()
    ready.reconcile()
    ready.turn(1000)
    assert ready.notices() == []


def test_it_waits_for_what_the_recovery_still_settles(ready: Bench) -> None:
    lost, settling, _ = interrupted(ready)
    ready.crash()
    ready.reconcile({settling: RunState.SETTLING})
    ready.turn(1000)
    ready.turn(1000)
    assert ready.notices() == []
    ready.tell(launch.Exited(settling, Gone.INTERRUPTED, None))
    ready.turn(1000)
    (notice,) = ready.notices()
    assert {lost, settling} <= set(notice.runs)


def test_it_does_not_wait_for_ever_and_is_raised_again_by_what_follows(ready: Bench) -> None:
    _, settling, _ = interrupted(ready)
    ready.crash()
    ready.reconcile({settling: RunState.SETTLING})
    for _ in range(12):
        ready.turn(1000)
    (first,) = ready.notices()
    assert settling not in first.runs
    ready.tell(launch.Exited(settling, Gone.INTERRUPTED, None))
    for _ in range(3):
        ready.turn(1000)
    first, second = ready.notices()
    assert first.id == second.id
    assert set(second.runs) == {*first.runs, settling}


def test_a_crash_before_it_is_told_does_not_lose_it(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(ready, 1)
    ready.crash()
    ready.reconcile()

    def crash(name: str) -> None:
        if name == "scheduler.before_notify":
            raise failpoints.FailpointError(name)

    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "hit", crash)
        with pytest.raises(failpoints.FailpointError):
            ready.turn(1000)
    ready.crash()
    ready.turn(1000)
    ready.turn(1000)
    assert len(ready.notices()) == 1
    ready.turn(1000)
    assert len(ready.notices()) == 1


def test_ordinary_ends_raise_none(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    ready.report(run_id)
    ready.turn(1000)
    assert ready.notices() == []
