"""What checkers see: each change of a row that was committed, each message that matters, each turn."""

from typing import NamedTuple

from cronward.protocol.why import Cause


class Run(NamedTuple):
    """A row of `runs`."""

    run_id: str
    job_id: str
    job_position: int
    kind: str
    slot_ms: int
    requested_ms: int
    state: str
    reason: str | None

    @property
    def is_live(self) -> bool:
        return self.state in ("queued", "active")


class JobState(NamedTuple):
    """A row of `job_state`."""

    position: int
    next_due_ms: int | None
    due_kind: str
    due_slot_ms: int | None
    flag: str | None
    last_status: str | None
    consecutive_errors: int
    consecutive_skipped: int
    consumed_slots: int


class Job(NamedTuple):
    """A row of `jobs`."""

    position: int
    job_id: str
    enabled: int
    definition: str


class SlotDecision(NamedTuple):
    """A row of `slot_decisions`."""

    job_id: str
    decision: str
    slot_ms: int
    until_ms: int
    run_id: str | None


class Edit(NamedTuple):
    """A row of `changes`."""

    job_id: str | None
    action: str
    caller: str | None
    detail: str


Row = Run | JobState | Job | SlotDecision | Edit
TABLES: dict[str, type[Row]] = {
    "runs": Run,
    "job_state": JobState,
    "jobs": Job,
    "slot_decisions": SlotDecision,
    "changes": Edit,
}


class Changed(NamedTuple):
    """A row was inserted (no `before`), updated, or deleted (no `after`)."""

    before: Row | None
    after: Row | None


class Tampered(NamedTuple):
    """A terminal row of `runs` changed in something other than its late outcome or its being forgotten."""

    run_id: str


class TurnBegan(NamedTuple):
    """The scheduler took a batch; the changes that follow are of this turn."""

    wall_ms: int
    capacity: int


class TurnEnded(NamedTuple):
    """`deciding`: due jobs were looked for; `more`: some are left for the next turn."""

    wall_ms: int
    deciding: bool
    more: bool


class LifeEnded(NamedTuple):
    """The scheduler's memory is gone."""


class EpochClosed(NamedTuple):
    """The launcher has to register; what is unanswered will be looked for."""


class Launched(NamedTuple):
    """A Launch left."""

    run_id: str


class Answered(NamedTuple):
    """An answer to a Launch, or the run's end, came from the launcher."""

    run_id: str


class TaskStarted(NamedTuple):
    """An executor began the run's task. Nobody but the simulation knows."""

    run_id: str


class TaskEnded(NamedTuple):
    """The task ended with this status, and its outcome was saved."""

    run_id: str
    status: str
    wall_ms: int


class Explained(NamedTuple):
    """Somebody asked at `now_ms` what became of the instant `at_ms` of a job, and was told this (see `WhyView`)."""

    job_id: str
    at_ms: int
    now_ms: int
    cause: Cause
    run_id: str | None
    since_ms: int | None
    until_ms: int | None


class Quiet(NamedTuple):
    """The end: everything was up for a day, and nobody asked for anything."""

    wall_ms: int


Seen = (
    Changed
    | Tampered
    | TurnBegan
    | TurnEnded
    | LifeEnded
    | EpochClosed
    | Launched
    | Answered
    | TaskStarted
    | TaskEnded
    | Explained
    | Quiet
)
