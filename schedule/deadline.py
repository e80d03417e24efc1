"""A deadline: when a job is to be looked at next, why then, and which slot it stands for."""

import enum

import msgspec


class Kind(enum.StrEnum):
    """Why a deadline is where it is."""

    SLOT = "slot"
    """The schedule says so."""
    RETRY = "retry"
    """The last run failed with an error that may pass soon."""
    BACKOFF = "backoff"
    """The job failed: the slots before this are left out."""
    CATCH_UP = "catch_up"
    """A slot was missed and is run late."""
    PACED = "paced"
    """The last run proposed it."""


IN_WORDS = {
    Kind.SLOT: "its slot waits until some time has passed since the last run",
    Kind.RETRY: "a quick retry of its last run",
    Kind.BACKOFF: "later than its next slot, because it failed",
    Kind.CATCH_UP: "a missed slot is run late",
    Kind.PACED: "as its last run proposed",
}
"""Why something is due that is no slot at that time."""


class Deadline(msgspec.Struct, frozen=True):
    """`due_ms` is when; `slot_ms` is the slot that it stands for where that is another instant (one that is run late
    keeps its own slot, and so its run id). Retries, backoff and paced checks are slots of their own."""

    due_ms: int
    kind: Kind = Kind.SLOT
    slot_ms: int | None = None

    @property
    def is_beside_the_schedule(self) -> bool:
        """Whether it is no slot of the schedule at that time."""
        return self.kind is not Kind.SLOT or self.slot != self.due_ms

    @property
    def slot(self) -> int:
        """The slot's own time in epoch ms; the run's id is made of it."""
        return self.due_ms if self.slot_ms is None else self.slot_ms
