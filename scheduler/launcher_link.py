"""The scheduler's side of the handshake with the launcher: a total table of state × message, and who may launch.

absent     : no launcher, or one whose epoch was closed
welcomed   : a new epoch was given out, the inventory is awaited; nothing is activated
ready      : the inventory was applied
leaving    : the launcher said goodbye; answered, nothing more is sent to it
"""

import enum

from cronward.protocol import launch
from cronward.protocol.identity import ProcessIdentity
from cronward.scheduler.effects import Address

UNANSWERED_LAUNCH_MS = 30_000
"""A launch that is not answered within this time closes the epoch; the next inventory decides what became of it."""

SETTLING_MS = 10_000
"""How long what a recovery still ends may hold back the slots that were missed."""

SILENCE_MS = 10_000
"""A launcher that was not heard for this long is shown as absent; it has to register again."""


class LinkState(enum.StrEnum):
    ABSENT = "absent"
    WELCOMED = "welcomed"
    READY = "ready"
    LEAVING = "leaving"


class Step(enum.StrEnum):
    """What a message leads to."""

    WELCOME = "welcome"
    APPLY = "apply"
    CONFIRM = "confirm"
    RECORD = "record"
    BEAT = "beat"
    FAREWELL = "farewell"
    REGISTER_AGAIN = "register_again"


_FACTS: dict[type, Step] = {
    launch.Register: Step.WELCOME,
    launch.Accepted: Step.RECORD,
    launch.Refused: Step.RECORD,
    launch.Exited: Step.RECORD,
    launch.Forgotten: Step.RECORD,
}
"""Facts are taken in every state: they carry what is needed to judge them late."""

STEPS: dict[LinkState, dict[type, Step]] = {
    LinkState.ABSENT: _FACTS
    | {
        launch.Inventory: Step.REGISTER_AGAIN,
        launch.Heartbeat: Step.REGISTER_AGAIN,
        launch.Leaving: Step.FAREWELL,
    },
    LinkState.WELCOMED: _FACTS
    | {launch.Inventory: Step.APPLY, launch.Heartbeat: Step.BEAT, launch.Leaving: Step.FAREWELL},
    LinkState.READY: _FACTS
    | {launch.Inventory: Step.CONFIRM, launch.Heartbeat: Step.BEAT, launch.Leaving: Step.FAREWELL},
    LinkState.LEAVING: _FACTS
    | {
        launch.Inventory: Step.REGISTER_AGAIN,
        launch.Heartbeat: Step.REGISTER_AGAIN,
        launch.Leaving: Step.FAREWELL,
    },
}


class LauncherLink:
    """The current epoch. Epochs count from 1 within one life of the scheduler."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.epoch = 0
        self.state = LinkState.ABSENT
        self.address: Address | None = None
        self.launcher: ProcessIdentity | None = None
        self.heartbeat: launch.Heartbeat | None = None
        self.heard_mono_ms = 0
        self.ready_mono_ms = 0
        self.unanswered: dict[str, int] = {}
        """Launches sent in this epoch without an answer, with the monotonic ms of sending."""
        self.undecided: set[str] = set()
        """Runs that Welcome named and that are neither seen alive nor settled."""
        self.unverified_since_ms: dict[str, int] = {}
        """Active runs that no launcher and no executor has vouched for since then."""

    def step(self, message: launch.FromLauncher) -> Step:
        """What to do with `message`. One that names another instance or epoch is of the past."""
        if isinstance(message, launch.Inventory | launch.Heartbeat) and not self._is_current(message):
            return Step.REGISTER_AGAIN
        return STEPS[self.state][type(message)]

    def _is_current(self, message: launch.Inventory | launch.Heartbeat) -> bool:
        return message.instance == self.instance and message.epoch == self.epoch

    def open_epoch(self, launcher: ProcessIdentity, address: Address, active: list[str], now_ms: int) -> None:
        """A launcher registered: every active run has to be vouched for anew."""
        self.epoch += 1
        self.state = LinkState.WELCOMED
        self.address = address
        self.launcher = launcher
        self.heartbeat = None
        self.unanswered.clear()
        self.undecided = set(active)
        self.doubt(active, now_ms)

    def apply_inventory(self, mono_ms: int) -> None:
        """The inventory of this epoch is applied: launches may follow."""
        self.state = LinkState.READY
        self.ready_mono_ms = mono_ms

    def is_settled(self, mono_ms: int) -> bool:
        """Whether a recovery is complete enough to look for slots that were missed."""
        waited = mono_ms - self.ready_mono_ms > SETTLING_MS
        return self.state is LinkState.READY and (not self.undecided or waited)

    def close_epoch(self, active: list[str], now_ms: int) -> None:
        """Nothing is launched any more until a launcher registers again."""
        self.state = LinkState.ABSENT
        self.unanswered.clear()
        self.doubt(active, now_ms)

    def doubt(self, runs: list[str], now_ms: int) -> None:
        """Nobody vouches for these runs at the moment."""
        for run in runs:
            self.unverified_since_ms.setdefault(run, now_ms)

    def vouch(self, run: str) -> None:
        """Somebody who knows says that the run is alive, or it is over."""
        self.undecided.discard(run)
        self.unverified_since_ms.pop(run, None)

    def answered(self, run: str) -> None:
        self.unanswered.pop(run, None)

    def can_launch(self) -> bool:
        """Whether the launcher is reconciled and says that it can start runs."""
        return self.state is LinkState.READY and (self.heartbeat is None or self.heartbeat.cannot_start is None)

    def is_overdue(self, mono_ms: int) -> bool:
        """Whether the epoch has to be closed: a launch is unanswered, or the launcher silent, for too long."""
        if self.state not in (LinkState.WELCOMED, LinkState.READY):
            return False
        oldest = next(iter(self.unanswered.values()), mono_ms)
        return mono_ms - oldest > UNANSWERED_LAUNCH_MS or mono_ms - self.heard_mono_ms > SILENCE_MS
