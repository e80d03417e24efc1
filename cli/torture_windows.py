"""The table of crash windows in a form that a program can check: what a crash at each point may cost, and the cells of
the crash matrix (point × action × victims)."""

import enum
from collections.abc import Iterator

import msgspec

from cronward.protocol.failpoints import WINDOWS

LAUNCHES_AT_RISK = 16
"""So many launches may be unanswered, and lost with a daemon."""

DELAY_MS = 400
EVERY = 1_000
"""More than the commands of a round."""


class Kind(enum.StrEnum):
    """What a process of an installation is."""

    SCHEDULER = "scheduler"
    LAUNCHER = "launcher"
    ZYGOTE = "zygote"
    EXECUTOR = "executor"
    TASK = "task"


class Action(enum.StrEnum):
    """What happens while a process is at the point. It waits there, so nobody is quicker than the failure."""

    KILL = "kill"
    """The victims get SIGKILL; the process at the point kills itself if it is one of them, and goes on if not."""
    STOP = "stop"
    """The victims get SIGSTOP, are silent for a moment, and then get SIGKILL."""
    TERM = "term"
    """The victims get SIGTERM."""
    ERROR = "error"
    """The code at the point fails with an error; of the victims the others get SIGKILL."""
    DELAY = "delay"
    """The process at the point is held up; of the victims the others get SIGKILL meanwhile."""


class Victims(enum.StrEnum):
    """Who is hit. `executor` is the one at the point, or all of them where a daemon is at the point."""

    SCHEDULER = "scheduler"
    LAUNCHER = "launcher"
    EXECUTOR = "executor"
    BOTH = "both"
    EVERYTHING = "everything"
    ZYGOTE = "zygote"


KINDS: dict[Victims, frozenset[Kind]] = {
    Victims.SCHEDULER: frozenset({Kind.SCHEDULER}),
    Victims.LAUNCHER: frozenset({Kind.LAUNCHER}),
    Victims.EXECUTOR: frozenset({Kind.EXECUTOR}),
    Victims.BOTH: frozenset({Kind.SCHEDULER, Kind.LAUNCHER}),
    Victims.EVERYTHING: frozenset(Kind),
    Victims.ZYGOTE: frozenset({Kind.ZYGOTE}),
}


class Fate(enum.StrEnum):
    """What becomes of the run at the point when the process there dies."""

    RUNS = "ok"
    LOST = "launch_lost"
    INTERRUPTED = "interrupted"


class Row(msgspec.Struct, frozen=True):
    """One point. `began` and `ended` say whether the task of an interrupted run has begun and come to its end (None:
    either). `error_ends`: an error there ends the process. `provoked`: only reached after an executor has died.
    `long_runs`: so many commands last longer than most restarts, so that there is something to adopt, or to kill."""

    fate: Fate
    expected: str
    began: bool | None = None
    ended: bool | None = None
    error_ends: bool = True
    provoked: bool = False
    long_runs: int = 1


_RESUMED = "ok"
_RECORDED = "ok, recorded once"
_MID_TASK = "interrupted; the task's processes ended"

ROWS: dict[str, Row] = {
    "scheduler.before_request_commit": Row(Fate.RUNS, "ok, requested once"),
    "scheduler.after_request_commit": Row(Fate.RUNS, _RESUMED),
    "scheduler.after_active_commit": Row(Fate.LOST, f"1 to {LAUNCHES_AT_RISK} launch_lost"),
    "launcher.after_receive": Row(Fate.LOST, f"1 to {LAUNCHES_AT_RISK} launch_lost", error_ends=False),
    "launcher.after_publish": Row(Fate.INTERRUPTED, "interrupted, never began", began=False, error_ends=False),
    "launcher.after_hand_over": Row(Fate.RUNS, "ok, adopted", long_runs=EVERY),
    "executor.before_start": Row(Fate.INTERRUPTED, "interrupted, never began", began=False),
    "executor.during_task": Row(Fate.INTERRUPTED, _MID_TASK),
    "executor.after_task": Row(Fate.INTERRUPTED, "interrupted, though it had ended", began=True, ended=True),
    "executor.after_outcome_saved": Row(Fate.RUNS, _RECORDED),
    "executor.after_outcome_sent": Row(Fate.RUNS, _RECORDED),
    "scheduler.before_outcome_commit": Row(Fate.RUNS, _RECORDED),
    "scheduler.after_outcome_commit": Row(Fate.RUNS, _RECORDED),
    "launcher.before_exited": Row(Fate.RUNS, _RECORDED, provoked=True, long_runs=2),
    "executor.after_ack": Row(Fate.RUNS, _RECORDED),
    "executor.before_free": Row(Fate.RUNS, _RECORDED),
    "scheduler.before_notify": Row(Fate.RUNS, "the notice is sent", provoked=True, long_runs=2),
}
"""Every failpoint."""

WITHOUT_POINT = {"13": "this release delivers results nowhere, so there is no delivery to lose or repeat"}
"""Rows of the table that have no failpoint, and why."""


class Cell(msgspec.Struct, frozen=True):
    """One injected failure."""

    point: str
    action: Action
    victims: Victims

    def __str__(self) -> str:
        return f"{self.point}/{self.action}/{self.victims}"

    @property
    def owner(self) -> Kind:
        """The kind of process that reaches the point."""
        return Kind(self.point.partition(".")[0])

    @property
    def row(self) -> Row:
        return ROWS[self.point]

    @property
    def window(self) -> str:
        return WINDOWS[self.point]

    @property
    def hits_owner(self) -> bool:
        """Whether the process at the point is hit like the other victims."""
        return self.owner in KINDS[self.victims]

    @property
    def kills(self) -> bool:
        """Whether victims are killed, and not asked to end."""
        return self.action is not Action.TERM

    @property
    def armed(self) -> str:
        """The action of the failpoint. Whoever is not to die by itself is stopped there and dealt with from outside."""
        match self.action:
            case Action.KILL if self.hits_owner:
                return "crash"
            case Action.ERROR:
                return "error"
            case Action.DELAY:
                return f"delay:{DELAY_MS}"
            case _:
                return "stop"

    @property
    def owner_dies(self) -> bool:
        """Whether the process at the point ends there without finishing anything."""
        if self.victims is Victims.EVERYTHING:
            return self.kills
        if self.action is Action.ERROR:
            return self.row.error_ends
        return self.action in (Action.KILL, Action.STOP) and self.hits_owner

    @property
    def killed(self) -> frozenset[Kind]:
        """Kinds of processes of which some die without finishing anything."""
        kinds = KINDS[self.victims] if self.kills else frozenset[Kind]()
        if self.action in (Action.ERROR, Action.DELAY) and self.victims is not Victims.EVERYTHING:
            kinds -= {self.owner}
        if self.owner_dies:
            kinds |= {self.owner}
        return kinds | {Kind.EXECUTOR} if self.row.provoked else kinds


def impossible(cell: Cell) -> str | None:
    """Why the cell cannot occur, or None."""
    if cell.action is Action.DELAY and cell.victims is Victims.EVERYTHING:
        return "nobody lives to see the end of the delay: the same as kill"
    if cell.action is Action.ERROR and cell.victims is Victims.EVERYTHING:
        return "whether the error or the power cut comes first makes no difference: the same as kill"
    return None


def cells(point: str) -> Iterator[Cell]:
    """Every cell of a point that can occur."""
    for action in Action:
        for victims in Victims:
            cell = Cell(point, action, victims)
            if impossible(cell) is None:
                yield cell
