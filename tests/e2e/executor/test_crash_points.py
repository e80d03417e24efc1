"""Each failpoint of the executor stands exactly at its boundary: what exists, and what was said, when it is passed."""

import os
import signal
from pathlib import Path

import pytest

from cronward.protocol import failpoints, outcome, pair, rundir
from cronward.protocol.outcome import Status
from tests.support.executor_rig import DEADLINE_S, Executor, Rig, alive, wait_for

EXECUTOR_POINTS = [name for name in failpoints.WINDOWS if name.startswith("executor.")]


def armed(rig: Rig, name: str, action: str) -> Executor:
    hits = rig.root / "hits"
    hits.mkdir(exist_ok=True)
    return rig.start(
        env={
            "CRONWARD_FAILPOINTS_ENABLE": "yes",
            "CRONWARD_FAILPOINTS": f"{name}={action}",
            "CRONWARD_FAILPOINTS_DIR": str(hits),
        }
    )


# task begun, lock byte 1, outcome saved, report received (None: on its way), lock still held by the stopped executor
BOUNDARIES: dict[str, tuple[bool, bool, bool, bool | None, bool]] = {
    "executor.before_start": (False, False, False, False, True),
    "executor.during_task": (True, False, False, False, True),
    "executor.after_task": (True, True, False, False, True),
    "executor.after_outcome_saved": (True, True, True, False, True),
    "executor.after_outcome_sent": (True, True, True, None, True),
    "executor.after_ack": (True, True, True, True, True),
    "executor.before_free": (True, True, True, True, False),
}


def test_every_point_of_the_executor_is_here() -> None:
    assert list(BOUNDARIES) == EXECUTOR_POINTS


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_stop_at_the_point_shows_the_boundary(rig: Rig, name: str, tmp_path: Path) -> None:
    begun, over, saved, sent, held = BOUNDARIES[name]
    executor = armed(rig, name, "stop")
    marker = tmp_path / "begun"
    rig.scheduler.acknowledge = name in ("executor.after_ack", "executor.before_free")
    run_id = rig.begin(executor, "sh", "-c", f"touch {marker}; sleep 0.1")
    rig.wait_for("the stop", lambda: stopped(executor.pid))
    assert wait_for("the task", marker.exists) if begun else not marker.exists()
    assert (rig.lock_byte(run_id) == rundir.TASK_OVER) == over
    assert (rig.directory(run_id) / rundir.OUTCOME).exists() == saved
    rig.scheduler.serve(200)
    assert sent is None or bool(rig.scheduler.reports) == sent
    assert rig.is_locked(run_id) == held
    executor.read()
    assert not executor.packets
    os.kill(executor.pid, signal.SIGCONT)
    rig.scheduler.acknowledge = True
    assert rig.reported(run_id).status is Status.OK
    assert rig.packet(executor, pair.Free).acknowledged


def stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat[stat.rindex(")") + 2] == "T"


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_crash_at_the_point_frees_the_lock(rig: Rig, name: str) -> None:
    executor = armed(rig, name, "crash")
    run_id = rig.begin(executor, "sleep", "0.1")
    rig.wait_for("the crash", lambda: not alive(executor.pid))
    assert executor.process.wait(DEADLINE_S) == -signal.SIGKILL
    assert not rig.is_locked(run_id)
    file = rig.directory(run_id) / rundir.OUTCOME
    assert file.exists() == BOUNDARIES[name][2]
    if file.exists():
        assert outcome.decode(rundir.unseal(file.read_bytes(), rundir.OUTCOME)).status is Status.OK


def test_an_error_of_its_own_ends_the_executor_and_frees_the_lock(rig: Rig) -> None:
    executor = armed(rig, "executor.after_task", "error")
    run_id = rig.begin(executor, "true")
    assert executor.process.wait(DEADLINE_S) == 70
    assert not rig.is_locked(run_id)


def test_failpoints_without_permission_are_refused_at_start(rig: Rig) -> None:
    with pytest.raises(AssertionError, match="Ready"):
        rig.start(env={"CRONWARD_FAILPOINTS": "executor.after_task=crash"}, deadline_s=2)
    assert rig.executors[-1].process.wait(DEADLINE_S) == 78
