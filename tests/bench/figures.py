"""How the benchmarks count and print."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BASE = Path("/var/tmp")
"""Where benchmarks keep their state. Not /tmp: it may be no disk, and on an ext4 without a journal a directory in which
many files were just deleted makes new ones slowly. For the same reason a benchmark deletes only when it is over."""


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
