"""One simulation: the machine with everybody on it, from its first moment to the quiet day after its last fault."""

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from unittest import mock

import msgspec

from cronward.protocol import failpoints, ids
from cronward.schedule import zone_database
from cronward.scheduler import retention
from cronward.scheduler.world import Turn
from tests.simulation.support.curious import Curious
from tests.simulation.support.faults import Faults
from tests.simulation.support.launcher import SimulatedLauncher
from tests.simulation.support.machine import Broken, Checker, Machine
from tests.simulation.support.operator import Operator
from tests.simulation.support.scenario import DAY_MS, Scenario
from tests.simulation.support.scheduler import SimulatedScheduler, Stuck
from tests.simulation.support.seen import Quiet

TURNS_PER_SWEEP = 60


class Result(msgspec.Struct, frozen=True):
    """`digest` is of the whole trace, `tail` its last lines. `broken` says which invariant does not hold, if any."""

    seed: int
    digest: str
    events: int
    tasks: int
    broken: str | None
    tail: list[str]


def simulate(scenario: Scenario, checkers: list[Checker]) -> Result:
    """Runs to the end, or to the first thing that must not be."""
    machine = Machine(scenario, checkers)
    broken = None
    with _determined(machine):
        try:
            _run(machine)
        except (Broken, Stuck) as error:
            broken = f"{type(error).__name__}: {error}"
    digest = machine.digest.hexdigest()
    return Result(scenario.seed, digest, machine.events, machine.launcher.tasks, broken, list(machine.trace))


def _run(machine: Machine) -> None:
    scenario = machine.scenario
    machine.scheduler = SimulatedScheduler(machine)
    machine.launcher = SimulatedLauncher(machine)
    faults, operator = Faults(machine), Operator(machine)
    with (
        mock.patch.object(failpoints, "hit", machine.scheduler.pass_point),
        mock.patch.object(retention.Retention, "sweep", _seldom(retention.Retention.sweep)),
        mock.patch.object(zone_database, "fingerprint", return_value=""),
    ):
        machine.scheduler.start()
        machine.launcher.start()
        operator.plan()
        Curious(machine).plan()
        faults.plan()
        _go_on_for(machine, round(scenario.days * DAY_MS))
        faults.heal()
        operator.resume()
        _go_on_for(machine, DAY_MS)
        machine.see(Quiet(machine.clock.wall_ms()))


def _go_on_for(machine: Machine, ms: int) -> None:
    ended: list[bool] = []

    def end() -> None:
        ended.append(True)
        machine.scheduler.wake = True

    machine.agenda.after(ms, end)
    while not ended:
        if machine.scheduler.is_up:
            machine.scheduler.turn()
        else:
            machine.agenda.run_next()


def _seldom(sweep: Callable[[retention.Retention, Turn], None]) -> Callable[[retention.Retention, Turn], None]:
    """A sweep would come with nearly each turn here, which is too much: time passes by minutes."""
    calls = count()

    def seldom(swept: retention.Retention, turn: Turn) -> None:
        if next(calls) % TURNS_PER_SWEEP == 0:
            sweep(swept, turn)

    return seldom


@contextmanager
def _determined(machine: Machine) -> Iterator[None]:
    """Job ids come from the seed, and nobody logs."""
    random = machine.scenario.random("ids")

    def new_job_id() -> str:
        return str(uuid.UUID(int=random.getrandbits(128), version=4))

    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with mock.patch.object(ids, "new_job_id", new_job_id):
            yield
    finally:
        logging.disable(disabled)
