"""The phases of a run inside its executor, and everything that can happen to it."""

import enum


class Phase(enum.Enum):
    SETUP = "setup"
    """The leader is switching its user. Left within the hand-over itself where no user is switched."""
    RUNNING = "running"
    STOPPING = "stopping"
    """The leader is alive and is being ended."""
    DRAINING = "draining"
    """The leader has ended; the rest of the output is taken."""
    CLEANUP = "cleanup"
    """Whatever else descends from the task is being ended."""
    REPORTING = "reporting"
    """The task is over; its outcome is repeated until it is recorded."""


class Event(enum.Enum):
    """Those that end in DUE are deadlines of the run itself."""

    SETUP_REPLY = enum.auto()
    """The leader that switches its user has answered, or ended."""
    CHILD_ENDED = enum.auto()
    """SIGCHLD: the leader, or a process that was adopted."""
    OUTPUT = enum.auto()
    """The task has written something."""
    OUTPUT_OVER = enum.auto()
    """Both streams are at their end."""
    CANCEL = enum.auto()
    TERMINATE = enum.auto()
    """SIGTERM to the executor."""
    CONNECTED = enum.auto()
    """The scheduler, perhaps a new one, was reached."""
    RECORDED = enum.auto()
    """The scheduler has committed the outcome."""
    SETUP_DUE = enum.auto()
    TIMEOUT_DUE = enum.auto()
    SILENCE_DUE = enum.auto()
    GRACE_DUE = enum.auto()
    """The time between TERM and KILL is over."""
    SWEEP_DUE = enum.auto()
    """After a KILL: look again, something may have forked meanwhile."""
    DRAIN_DUE = enum.auto()
    CLEANUP_DUE = enum.auto()
    """What was killed should be gone by now."""
    RESEND_DUE = enum.auto()
    HOLD_DUE = enum.auto()
