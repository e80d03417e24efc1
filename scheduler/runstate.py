"""The states of a run as a total table: what each event does in each state."""

import enum

from cronward.protocol.outcome import Status


class State(enum.StrEnum):
    QUEUED = "queued"
    ACTIVE = "active"
    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"


class Event(enum.StrEnum):
    """What can happen to a run."""

    ACTIVATE = "activate"
    """Capacity is free and the launcher is ready (commit B)."""
    WITHDRAW = "withdraw"
    """The request lost its ground: disabled, removed, rescheduled, context lost, cancelled, not readable."""
    REFUSE = "refuse"
    """The launcher will not hand it over."""
    FINISH_OK = "finish_ok"
    FINISH_ERROR = "finish_error"
    FINISH_SKIPPED = "finish_skipped"
    """An outcome came, from the executor or from the run's directory."""
    VANISH = "vanish"
    """Nobody has it and there is no outcome: interrupted."""
    NEVER_START = "never_start"
    """Proven never to have been handed over: launch lost."""
    ABANDON = "abandon"
    """An operator ends the record."""


class Verdict(enum.StrEnum):
    """What the table says where the state does not change."""

    DUPLICATE = "duplicate"
    """The run is terminal: acknowledge, compare, change nothing."""
    IGNORE = "ignore"
    """Right to come and without effect."""
    IMPOSSIBLE = "impossible"
    """Cannot happen unless something is broken: log, change nothing."""


_TERMINAL: dict[Event, State | Verdict] = {
    Event.ACTIVATE: Verdict.IMPOSSIBLE,
    Event.WITHDRAW: Verdict.IGNORE,
    Event.REFUSE: Verdict.DUPLICATE,
    Event.FINISH_OK: Verdict.DUPLICATE,
    Event.FINISH_ERROR: Verdict.DUPLICATE,
    Event.FINISH_SKIPPED: Verdict.DUPLICATE,
    Event.VANISH: Verdict.DUPLICATE,
    Event.NEVER_START: Verdict.DUPLICATE,
    Event.ABANDON: Verdict.IGNORE,
}

TRANSITIONS: dict[State, dict[Event, State | Verdict]] = {
    State.QUEUED: {
        Event.ACTIVATE: State.ACTIVE,
        Event.WITHDRAW: State.SKIPPED,
        Event.REFUSE: Verdict.IMPOSSIBLE,
        Event.FINISH_OK: Verdict.IMPOSSIBLE,
        Event.FINISH_ERROR: Verdict.IMPOSSIBLE,
        Event.FINISH_SKIPPED: Verdict.IMPOSSIBLE,
        Event.VANISH: Verdict.IMPOSSIBLE,
        Event.NEVER_START: Verdict.IMPOSSIBLE,
        Event.ABANDON: State.SKIPPED,
    },
    State.ACTIVE: {
        Event.ACTIVATE: Verdict.IMPOSSIBLE,
        Event.WITHDRAW: Verdict.IGNORE,
        Event.REFUSE: State.SKIPPED,
        Event.FINISH_OK: State.OK,
        Event.FINISH_ERROR: State.ERROR,
        Event.FINISH_SKIPPED: State.SKIPPED,
        Event.VANISH: State.ERROR,
        Event.NEVER_START: State.ERROR,
        Event.ABANDON: State.ERROR,
    },
    State.OK: _TERMINAL,
    State.ERROR: _TERMINAL,
    State.SKIPPED: _TERMINAL,
}

FINISH: dict[Status, Event] = {
    Status.OK: Event.FINISH_OK,
    Status.ERROR: Event.FINISH_ERROR,
    Status.SKIPPED: Event.FINISH_SKIPPED,
}
