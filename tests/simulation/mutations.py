"""Bugs to be planted in the scheduler, one for each checker: what a careless change could do."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from cronward.protocol import ids, launch
from cronward.protocol import job as jobs
from cronward.protocol.outcome import Reason
from cronward.schedule import planner, retry
from cronward.scheduler import (
    activation,
    admission,
    launcher_desk,
    ledger,
    queries,
)
from cronward.scheduler.rows import RunRow, find_job
from cronward.scheduler.runstate import Event, State
from cronward.scheduler.world import Turn
from tests.simulation.checkers.capacity import Capacity
from tests.simulation.checkers.counters import Counters
from tests.simulation.checkers.deadlines_forward import DeadlinesForward
from tests.simulation.checkers.honest_ledger import HonestLedger
from tests.simulation.checkers.launch_once import LaunchOnce
from tests.simulation.checkers.nothing_forgotten import NothingForgotten
from tests.simulation.checkers.one_live_run import OneLiveRun
from tests.simulation.checkers.queue_order import QueueOrder
from tests.simulation.checkers.slot_once import SlotOnce
from tests.simulation.checkers.terminal_rows import TerminalRows
from tests.simulation.checkers.true_answers import TrueAnswers
from tests.simulation.checkers.window import Window
from tests.simulation.support.machine import Checker

Plant = Callable[[pytest.MonkeyPatch, Path], None]


class Mutation(NamedTuple):
    """`plant` puts the bug in; `checker` alone has to find it."""

    name: str
    checker: Callable[[], Checker]
    plant: Plant
    capacity: int = 40
    days: float = 3


def _query(patch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Another text for one query."""
    changed = dict(queries.load())
    assert old in changed[name], changed[name]
    changed[name] = changed[name].replace(old, new)
    patch.setattr(queries, "load", lambda: changed)


def _set_deadline(turn: Turn, run: RunRow, due_ms: int) -> None:
    turn.store.run("set_deadline", position=run.job_position, next_due_ms=due_ms, due_kind="slot", due_slot_ms=None)


def _ids_of_the_wake_up(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    """A slot's id holds when it was noticed, and a failed run puts its slot back."""
    counter = itertools.count()
    original_id, original_leave = ids.slot_run_id, ledger._leave_on_job
    patch.setattr(ids, "slot_run_id", lambda key, job, slot_ms: original_id(f"{key}{next(counter)}", job, slot_ms))

    def leave(turn: Turn, run: RunRow, state: State, result: ledger.Result, ended_ms: int) -> None:
        original_leave(turn, run, state, result, ended_ms)
        if state is State.ERROR and run.kind == "scheduled":
            _set_deadline(turn, run, run.slot_ms)

    patch.setattr(ledger, "_leave_on_job", leave)


def _retry_from_the_slot(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    """A failed run's retry is counted from its slot and not from its end."""
    original = ledger._leave_on_job

    def leave(turn: Turn, run: RunRow, state: State, result: ledger.Result, ended_ms: int) -> None:
        original(turn, run, state, result, ended_ms)
        if state is State.ERROR and run.kind == "scheduled":
            _set_deadline(turn, run, run.slot_ms - 1)

    patch.setattr(ledger, "_leave_on_job", leave)


def _no_index_of_live_runs(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    schema = queries.SCHEMA.read_text()
    line = next(line for line in schema.splitlines() if "runs_one_live" in line)
    changed = scratch / "schema.sql"
    changed.write_text(schema.replace(line, ""))
    patch.setattr(queries, "SCHEMA", changed)


def _next_slot_but_one(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    """Planning begins a day after now."""
    original = planner.next_slot_ms

    def next_slot_ms(schedule: jobs.Schedule, *, job_id: str, after_ms: int) -> int | None:
        return original(schedule, job_id=job_id, after_ms=after_ms + 86_400_000)

    patch.setattr(planner, "next_slot_ms", next_slot_ms)


def _newest_first(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    _query(patch, "queue_head", "ORDER BY slot_ms,", "ORDER BY arrival DESC, slot_ms,")


def _interruptions_count(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    """A run that the service ended counts as a failure of the job."""
    patch.setattr(retry, "NOT_THE_JOBS_FAULT", frozenset())


def _forgetting_saves_space(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    _query(patch, "forget_old", "SET forget_ms = :now_ms", "SET forget_ms = :now_ms, outcome = NULL")


def _launches_are_repeated(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    """What is not answered is sent again with the inventory."""
    original = launcher_desk._apply_inventory

    def apply(turn: Turn, address: list[bytes], message: launch.Inventory) -> None:
        for run_id, found in message.runs.items():
            if found is launch.RunState.ABSENT:
                row = turn.store.row("run_by_id", run_id=run_id)
                job = find_job(turn.store, str(row[3])) if row else None
                if job is not None:
                    payload = job.decode().payload
                    turn.effects.to_launcher.append(activation._launch(turn, run_id, job.definition, payload))
        original(turn, address, message)

    patch.setattr(launcher_desk, "_apply_inventory", apply)


def _wide_window(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    patch.setattr(admission, "UNANSWERED_MAX", 64)


def _active_runs_are_not_counted(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    original = admission.admit
    patch.setattr(admission, "admit", lambda load: original(msgspec.structs.replace(load, active=0)))


def _silence_settles(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    """What a silent launcher did not answer is taken for lost."""
    original = launcher_desk.close_epoch

    def close(turn: Turn, why: str) -> None:
        for run_id in list(turn.world.link.unanswered):
            ledger.settle(turn, run_id, ledger.Result(Event.NEVER_START, Reason.LAUNCH_LOST, why))
        original(turn, why)

    patch.setattr(launcher_desk, "close_epoch", close)


def _decisions_are_not_read(patch: pytest.MonkeyPatch, scratch: Path) -> None:
    _query(patch, "decisions_about", "until_ms >= :slot_ms", "until_ms < 0")


MUTATIONS = [
    Mutation("slot ids of the wake-up", SlotOnce, _ids_of_the_wake_up),
    Mutation("retries from the slot", DeadlinesForward, _retry_from_the_slot),
    Mutation("no unique live run", OneLiveRun, _no_index_of_live_runs, days=8),
    Mutation("the next slot but one", NothingForgotten, _next_slot_but_one),
    Mutation("newest first", QueueOrder, _newest_first),
    Mutation("interruptions count", Counters, _interruptions_count),
    Mutation("forgetting saves space", TerminalRows, _forgetting_saves_space, days=8),
    Mutation("launches are repeated", LaunchOnce, _launches_are_repeated),
    Mutation("a wide window", Window, _wide_window),
    Mutation("active runs are not counted", Capacity, _active_runs_are_not_counted, capacity=4),
    Mutation("silence settles", HonestLedger, _silence_settles),
    Mutation("decisions are not read", TrueAnswers, _decisions_are_not_read),
]
