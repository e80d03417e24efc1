"""Who belongs to a run whose executor is dead."""

import os
import subprocess

from cronward.launcher.ladder import Ladder
from cronward.launcher.process_tree import Process, left_of, snapshot
from cronward.protocol.identity import ProcessIdentity
from tests.support.waiting import wait_until

EXECUTOR = ProcessIdentity(100, 5, "boot")


def process(pid: int, parent: int = 1, session: int = 1, run: str | None = None) -> Process:
    return Process(pid, parent, session, 10, run)


def pids(processes: list[Process]) -> set[int]:
    return {found.pid for found in processes}


def test_session_descent_run_id_and_group() -> None:
    everything = [
        process(10, session=100),  # in the executor's session
        process(11, parent=10, session=11),  # its child in a session of its own
        process(12, session=11),  # an orphan in that session
        process(13, session=13, run="run"),  # escaped all that, but carries the id
        process(14, parent=13, session=14),
        process(15, session=15),  # only its control group tells
        process(20, session=20, run="other"),
        process(21, session=1),
    ]
    assert pids(left_of("run", EXECUTOR, {15}, everything)) == {10, 11, 12, 13, 14, 15}


def test_a_session_number_in_use_by_somebody_else_tells_nothing() -> None:
    assert left_of("run", EXECUTOR, set(), [process(100, session=100), process(101, session=100)]) == []


def test_the_launchers_own_session_is_never_taken() -> None:
    own = os.getsid(0)
    everything = [process(10, session=own, run="run"), process(11, session=own)]
    assert pids(left_of("run", EXECUTOR, set(), everything)) == {10}


def test_without_an_executor_the_run_id_tells() -> None:
    assert pids(left_of("run", None, set(), [process(10, run="run"), process(11)])) == {10}


def test_the_ladder_ends_a_process_that_ignores_term() -> None:
    stubborn = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo set; sleep 60"],
        stdout=subprocess.PIPE,
        env={"CRONWARD_RUN_ID": "ladder-test", "PATH": os.environ["PATH"]},
        start_new_session=True,
    )
    assert stubborn.stdout is not None
    assert stubborn.stdout.readline() == b"set\n"
    ladder = Ladder(grace_ms=1000)

    def left() -> list[Process]:
        return left_of("ladder-test", None, set(), snapshot())

    assert stubborn.pid in pids(left())
    assert not ladder.step(left(), 0)
    assert not ladder.step(left(), 999)
    assert stubborn.poll() is None
    assert not ladder.step(left(), 1000)
    wait_until(lambda: stubborn.poll() is not None and not left(), "everything is ended")
    assert ladder.step(left(), 1001)
    stubborn.stdout.close()


def test_the_ladder_gives_up_on_what_does_not_end() -> None:
    ladder = Ladder(grace_ms=10)
    gone = [process(2**22 + 1)]
    assert not ladder.step(gone, 0)
    assert not ladder.step(gone, 10_009)
    assert ladder.step(gone, 10_010)
