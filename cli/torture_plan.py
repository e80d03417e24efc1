"""Which failures are injected in which round: chosen by a seed, the same for the same seed."""

import random
from fnmatch import fnmatchcase

import click
import msgspec

from cronward.cli.torture_windows import ROWS, Cell, cells
from cronward.protocol.failpoints import WINDOWS


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that decides what is done. `points` are names of failpoints, each at least once in as many rounds as
    there are points."""

    seed: int
    rounds: int
    points: list[str]
    capacity: int = 8
    fork: bool = False

    def cells(self) -> list[Cell]:
        """The failure of each round: the points in turn, newly shuffled for each turn, with any of their cells."""
        rng = random.Random(self.seed)  # noqa: S311 - repeatable, not secret
        drawn: list[Cell] = []
        while len(drawn) < self.rounds:
            drawn += [rng.choice(list(cells(point))) for point in rng.sample(self.points, len(self.points))]
        return drawn[: self.rounds]

    def rng(self, number: int) -> random.Random:
        """The chance in one round."""
        return random.Random(f"{self.seed}:{number}")  # noqa: S311


def choose_points(text: str | None) -> list[str]:
    """Failpoints by name (`executor.after_task`), pattern (`launcher.*`) or window (`3`), separated by commas; all of
    them without any. Raises click.BadParameter for a part that fits none."""
    if text is None:
        return list(ROWS)
    chosen: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        fitting = [point for point, window in WINDOWS.items() if part == window or fnmatchcase(point, part)]
        if not fitting:
            problem = f"window {part} has no failpoint" if part.isdigit() else f"no failpoint is called {part!r}"
            raise click.BadParameter(f"{problem}; 'cronward failpoints' lists them", param_hint="'--points'")
        chosen += [point for point in fitting if point not in chosen]
    return chosen
