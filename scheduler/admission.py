"""The one place that decides how many queued requests may become active now."""

import msgspec

UNANSWERED_MAX = 16
"""Launches without an answer at any time: what a killed launcher can cost at most."""


class Load(msgspec.Struct, frozen=True):
    """What the decision looks at. `ready` is False while no launcher is reconciled, it cannot start anything, or the
    service is paused, draining or stopping."""

    ready: bool
    capacity: int
    active: int
    unanswered: int


def admit(load: Load) -> int:
    """How many may become active."""
    if not load.ready:
        return 0
    return max(0, min(load.capacity - load.active, UNANSWERED_MAX - load.unanswered))
