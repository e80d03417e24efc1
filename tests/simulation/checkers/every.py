"""All checkers."""

from collections.abc import Callable

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

EVERY: tuple[Callable[[], Checker], ...] = (
    Capacity,
    Counters,
    DeadlinesForward,
    HonestLedger,
    LaunchOnce,
    NothingForgotten,
    OneLiveRun,
    QueueOrder,
    SlotOnce,
    TerminalRows,
    TrueAnswers,
    Window,
)


def every_checker() -> list[Checker]:
    """One of each, for one simulation."""
    return [make() for make in EVERY]
