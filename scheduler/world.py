"""What the scheduler remembers between turns: nothing that a restart could not do without."""

import enum

import msgspec

from cronward.protocol.clock import Clock
from cronward.protocol.paths import Paths
from cronward.scheduler.attention import Attention
from cronward.scheduler.effects import Address, Effects
from cronward.scheduler.launcher_link import LauncherLink
from cronward.scheduler.review_progress import Review
from cronward.scheduler.settings import Settings
from cronward.scheduler.store import Store


class Mode(enum.StrEnum):
    """What the service does with new work. `paused` survives a restart, `draining` does not."""

    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"
    STOPPING = "stopping"


class ExecutorPeer(msgspec.Struct):
    """What an executor last said about its run."""

    address: Address
    heard_mono_ms: int
    heard_ms: int
    phase: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0


class World:
    """One life of the scheduler."""

    def __init__(
        self, *, paths: Paths, clock: Clock, settings: Settings, instance: str, boot_id: str, secret_key: bytes
    ) -> None:
        self.paths = paths
        self.clock = clock
        self.settings = settings
        self.instance = instance
        self.boot_id = boot_id
        self.secret_key = secret_key
        self.started_ms = clock.wall_ms()
        self.mode = Mode.RUNNING
        self.paused_by: str | None = None
        self.storage_error: str | None = None
        self.link = LauncherLink(instance)
        self.executors: dict[str, ExecutorPeer] = {}
        self.attention = Attention()
        self.review = Review()
        self.caught_up = False
        """True once a launcher was reconciled in this life: before, slots that were missed are not requested."""
        self.event_seq = 0
        self.changes = 0
        """Counts commits that changed what a listing shows."""
        self.manual_runs = 0
        self.notices_sent: dict[str, int] = {}
        """Notices that the last tick sent and the next one marks as sent, with how many runs they named."""


class Turn:
    """What one turn works with: the time at its start, the store inside its transaction, memory, and its effects."""

    def __init__(self, world: World, store: Store) -> None:
        self.world = world
        self.store = store
        self.effects = Effects()
        self.now_ms = world.clock.wall_ms()
        self.mono_ms = world.clock.mono_ms()
