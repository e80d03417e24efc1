"""The faults that a disk can have, and at which of its operations each can happen."""

import enum

from tests.storage.support import medium


class Op(enum.StrEnum):
    """An operation that SQLite asks for."""

    OPEN = "open"
    ACCESS = "access"
    LOCK = "lock"
    SIZE = "size"
    READ = "read"
    WRITE = "write"
    TRUNCATE = "truncate"
    SYNC = "sync"
    DELETE = "delete"


CHANGING = frozenset({Op.OPEN, Op.WRITE, Op.TRUNCATE, Op.SYNC, Op.DELETE})


class Fault(enum.StrEnum):
    """What happens at the chosen operation."""

    CRASH = "crash"
    """The process ends before it; everything written stays."""
    CRASH_TORN = "crash-torn"
    """The process ends in the middle of a write."""
    POWER_LOST = "power-lost"
    """The power fails before it; what was not synced is lost."""
    POWER_TORN = "power-torn"
    """The same, but any sectors of what was not synced are there."""
    POWER_REORDERED = "power-reordered"
    """The same, but the newest of what was not synced is there and older things are not."""
    FULL = "full"
    """From here on no file can grow, until space is made; the write that meets it is cut short."""
    FULL_ONCE = "full-once"
    """This write finds no space, the next does."""
    IO_ERROR = "io-error"
    """This operation fails."""
    IO_ERRORS = "io-errors"
    """This one and all that follow fail, until the process is started again."""
    READ_ONLY = "read-only"
    """From here on nothing can be changed, until the process is started again."""
    SYNC_LIES = "sync-lies"
    """From here on the disk does not sync though it says so, and at the end the power fails."""


KEPT: dict[Fault, medium.Keep] = {
    Fault.POWER_LOST: medium.Nothing(),
    Fault.POWER_TORN: medium.Torn(),
    Fault.POWER_REORDERED: medium.Newest(),
    Fault.SYNC_LIES: medium.Nothing(),
}
"""Faults in which the power fails."""

DEADLY = frozenset({Fault.CRASH, Fault.CRASH_TORN, Fault.POWER_LOST, Fault.POWER_TORN, Fault.POWER_REORDERED})
"""Faults that end the process at the operation."""

SPACE = frozenset({Fault.FULL, Fault.FULL_ONCE})
"""Faults that the process has to outlive."""

_WHERE: dict[Fault, frozenset[Op]] = {
    Fault.CRASH: CHANGING,
    Fault.CRASH_TORN: frozenset({Op.WRITE}),
    Fault.POWER_LOST: CHANGING,
    Fault.POWER_TORN: CHANGING,
    Fault.POWER_REORDERED: CHANGING,
    Fault.FULL: frozenset({Op.WRITE}),
    Fault.FULL_ONCE: frozenset({Op.WRITE}),
    Fault.IO_ERROR: frozenset(Op),
    Fault.IO_ERRORS: frozenset(Op),
    Fault.READ_ONLY: CHANGING,
    Fault.SYNC_LIES: frozenset({Op.SYNC}),
}

_AT_THE_END = frozenset({Fault.CRASH, Fault.POWER_LOST, Fault.POWER_TORN, Fault.POWER_REORDERED})


def places(fault: Fault, operations: list[Op]) -> list[int]:
    """The indices of a sequence of operations at which the fault can happen; its length stands for the end."""
    found = [index for index, op in enumerate(operations) if op in _WHERE[fault]]
    return [*found, len(operations)] if fault in _AT_THE_END else found
