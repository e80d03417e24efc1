"""How the benchmarks count and print."""

import json
import math
import sys
from collections.abc import Mapping, Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def say(line: str) -> None:
    """Progress for people; the figures are on the last line of standard output."""
    print(line, file=sys.stderr, flush=True)


def finish(figures: Mapping[str, float]) -> None:
    """The one line of JSON."""
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))
