"""The launcher's side of the handshake with the scheduler, without sockets.

A launcher registers until it is welcomed into an epoch, says what it found of the runs that the welcome names, and
then takes launches of exactly this epoch. Whatever puts the epoch in doubt leads back to registering.
"""

import enum
from collections.abc import Callable

from cronward.protocol import launch

REGISTER_MS = 500
INVENTORY_MS = 1000
HEARTBEAT_MS = 2000
SILENCE_MS = 3 * HEARTBEAT_MS
LEAVING_MS = 500
LEAVE_MAX_MS = 2000


class State(enum.Enum):
    REGISTERING = "registering"
    """Register is repeated; a crash or restart on either side leads here."""
    INVENTORY = "inventory"
    """Welcomed; the inventory is repeated until it is applied."""
    RECONCILED = "reconciled"
    """The inventory is applied; launches arrive."""
    LEAVING = "leaving"
    """The scheduler was told that this process ends."""
    LEFT = "left"
    """Nothing more will come, or nobody is there to send it."""


class Order(enum.Enum):
    """What the service has to do with a message that it received."""

    NOTHING = "nothing"
    ENTER_EPOCH = "enter_epoch"
    """Look at the runs that this Welcome names and give `entered` the inventory."""
    ACCEPT_LAUNCH = "accept_launch"
    REFUSE_STALE = "refuse_stale"
    REFUSE_LEAVING = "refuse_leaving"
    APPLY = "apply"
    """A message that is right in every state: Ack, Cancel, Forget, Configure."""


class Say(enum.Enum):
    """What is to be sent now."""

    REGISTER = "register"
    INVENTORY = "inventory"
    HEARTBEAT = "heartbeat"
    LEAVING = "leaving"


class Session:
    """State of the handshake. Times are monotonic ms."""

    def __init__(self) -> None:
        self.state = State.REGISTERING
        self.instance = ""
        self.epoch = 0
        self.now_ms = 0
        self._heard_ms = 0
        self._leave_by_ms = 0
        self._next_ms: dict[Say, int] = {}

    def receive(self, message: launch.ToLauncher, now_ms: int) -> Order:
        """Moves on by one message."""
        self.now_ms = now_ms
        return TABLE[self.state, type(message)](self, message)

    def stop(self, now_ms: int) -> None:
        """The process was asked to end."""
        self.now_ms = now_ms
        if self.state in (State.INVENTORY, State.RECONCILED):
            self._leave_by_ms = now_ms + LEAVE_MAX_MS
            self._become(State.LEAVING)
        elif self.state is State.REGISTERING:
            self._become(State.LEFT)

    def give_up(self) -> None:
        """There is nobody who could answer Leaving."""
        self._become(State.LEFT)

    def connected(self) -> None:
        """A scheduler was reached just now, perhaps a new one: what is repeated is said at once, and the answer tells
        whether the epoch still holds."""
        self._next_ms.clear()

    def due(self, now_ms: int) -> list[Say]:
        """What to send at this moment; notices when the scheduler has been silent for too long."""
        self.now_ms = now_ms
        if self.state in (State.INVENTORY, State.RECONCILED) and now_ms - self._heard_ms >= SILENCE_MS:
            self._become(State.REGISTERING)
        elif self.state is State.LEAVING and now_ms >= self._leave_by_ms:
            self._become(State.LEFT)
        said = [say for say in REPEATS[self.state] if self._next_ms.get(say, 0) <= now_ms]
        for say in said:
            self._next_ms[say] = now_ms + REPEATS[self.state][say]
        return said

    def _become(self, state: State) -> None:
        self.state = state
        self._next_ms.clear()

    def _current(self, message: launch.Launch | launch.Reconciled | launch.Beat | launch.Left) -> bool:
        return (message.instance, message.epoch) == (self.instance, self.epoch)


# One function for each thing that a message can do.


def _ignore(session: Session, message: launch.ToLauncher) -> Order:
    return Order.NOTHING


def _apply(session: Session, message: launch.ToLauncher) -> Order:
    return Order.APPLY


def _enter(session: Session, message: launch.ToLauncher) -> Order:
    """A repeated Register is welcomed twice: the newest epoch counts, an older one of this instance is over."""
    assert isinstance(message, launch.Welcome)  # noqa: S101 - the table dispatches by type
    if message.instance == session.instance and message.epoch <= session.epoch:
        return Order.NOTHING
    session.instance, session.epoch = message.instance, message.epoch
    session._heard_ms = session.now_ms
    session._become(State.INVENTORY)
    return Order.ENTER_EPOCH


def _reconcile(session: Session, message: launch.ToLauncher) -> Order:
    assert isinstance(message, launch.Reconciled)  # noqa: S101 - the table dispatches by type
    if session._current(message):
        session._become(State.RECONCILED)
    return Order.NOTHING


def _launch(session: Session, message: launch.ToLauncher) -> Order:
    """While registering again, launches of the last epoch still count: the next inventory names them."""
    assert isinstance(message, launch.Launch)  # noqa: S101 - the table dispatches by type
    return Order.ACCEPT_LAUNCH if session._current(message) else Order.REFUSE_STALE


def _refuse(session: Session, message: launch.ToLauncher) -> Order:
    return Order.REFUSE_LEAVING


def _beat(session: Session, message: launch.ToLauncher) -> Order:
    assert isinstance(message, launch.Beat)  # noqa: S101 - the table dispatches by type
    if session._current(message):
        session._heard_ms = session.now_ms
    else:
        session._become(State.REGISTERING)
    return Order.NOTHING


def _register_again(session: Session, message: launch.ToLauncher) -> Order:
    session._become(State.REGISTERING)
    return Order.NOTHING


def _leave(session: Session, message: launch.ToLauncher) -> Order:
    session._become(State.LEFT)
    return Order.NOTHING


def _left(session: Session, message: launch.ToLauncher) -> Order:
    assert isinstance(message, launch.Left)  # noqa: S101 - the table dispatches by type
    return _leave(session, message) if session._current(message) else Order.NOTHING


Handler = Callable[[Session, launch.ToLauncher], Order]

_ALWAYS: dict[type[launch.ToLauncher], Handler] = {
    launch.Ack: _apply,
    launch.Cancel: _apply,
    launch.Forget: _apply,
    launch.Configure: _apply,
}
_ROWS: dict[State, dict[type[launch.ToLauncher], Handler]] = {
    State.REGISTERING: {
        launch.Welcome: _enter,
        launch.Reconciled: _ignore,
        launch.Launch: _launch,
        launch.Beat: _ignore,
        launch.RegisterAgain: _ignore,
        launch.Left: _ignore,
    },
    State.INVENTORY: {
        launch.Welcome: _enter,
        launch.Reconciled: _reconcile,
        launch.Launch: _launch,
        launch.Beat: _beat,
        launch.RegisterAgain: _register_again,
        launch.Left: _ignore,
    },
    State.RECONCILED: {
        launch.Welcome: _enter,
        launch.Reconciled: _ignore,
        launch.Launch: _launch,
        launch.Beat: _beat,
        launch.RegisterAgain: _register_again,
        launch.Left: _ignore,
    },
    State.LEAVING: {
        launch.Welcome: _ignore,
        launch.Reconciled: _ignore,
        launch.Launch: _launch,
        launch.Beat: _ignore,
        launch.RegisterAgain: _leave,
        launch.Left: _left,
    },
    State.LEFT: {
        launch.Welcome: _ignore,
        launch.Reconciled: _ignore,
        launch.Launch: _refuse,
        launch.Beat: _ignore,
        launch.RegisterAgain: _ignore,
        launch.Left: _ignore,
    },
}
TABLE: dict[tuple[State, type[launch.ToLauncher]], Handler] = {
    (state, kind): handler for state, row in _ROWS.items() for kind, handler in (row | _ALWAYS).items()
}
"""Every state × every message."""

REPEATS: dict[State, dict[Say, int]] = {
    State.REGISTERING: {Say.REGISTER: REGISTER_MS},
    State.INVENTORY: {Say.INVENTORY: INVENTORY_MS, Say.HEARTBEAT: HEARTBEAT_MS},
    State.RECONCILED: {Say.HEARTBEAT: HEARTBEAT_MS},
    State.LEAVING: {Say.LEAVING: LEAVING_MS},
    State.LEFT: {},
}
"""What each state repeats, and how often in ms."""
