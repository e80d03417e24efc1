"""What a turn wants to tell the world: collected in memory, sent after the commit, dropped if there is none."""

import enum

import msgspec

from cronward.protocol import launch, run
from cronward.protocol.views import JobView, NoticeView, RunView

Address = list[bytes]
"""Routing frames of a peer, as they came with its message."""


class Fact(enum.StrEnum):
    """Kinds of facts in a transaction; each has its failpoints around the commit."""

    REQUEST = "request"
    ACTIVE = "active"
    OUTCOME = "outcome"


class Reply(msgspec.Struct, frozen=True):
    """An answer on control or query, encoded."""

    socket: str
    address: Address
    body: bytes


class JobEvent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A `cron` event about a job: added, updated or removed."""

    action: str
    job_id: str
    job: JobView | None = None


class Mark(msgspec.Struct, frozen=True):
    """A place to return to when a message fails."""

    lengths: tuple[int, ...]
    facts: frozenset[Fact]


class Effects:
    """Effects of one turn, in the order in which they are sent: executors first, because they wait for capacity."""

    def __init__(self) -> None:
        self.to_executors: list[tuple[Address, run.ToExecutor]] = []
        self.launcher_answers: list[tuple[Address, launch.ToLauncher]] = []
        """To whoever sent a message on `launch`, which need not be the launcher of the current epoch."""
        self.to_launcher: list[launch.ToLauncher] = []
        """Orders for the launcher of the current epoch."""
        self.replies: list[Reply] = []
        self.run_events: list[RunView] = []
        self.job_events: list[JobEvent] = []
        self.notices: list[NoticeView] = []
        self.facts: set[Fact] = set()
        self.service_changed = False
        self.tick = False

    def _lists(self) -> tuple[list[object], ...]:
        lists = (
            self.to_executors,
            self.launcher_answers,
            self.to_launcher,
            self.replies,
            self.run_events,
            self.job_events,
            self.notices,
        )
        return lists  # type: ignore[return-value]  # only their lengths are used, list is invariant

    def mark(self) -> Mark:
        return Mark(tuple(map(len, self._lists())), frozenset(self.facts))

    def return_to(self, mark: Mark) -> None:
        """Forgets what was added since."""
        for items, length in zip(self._lists(), mark.lengths, strict=True):
            del items[length:]
        self.facts = set(mark.facts)

    def add(self, other: "Effects") -> None:
        """What another transaction led to, behind what is here."""
        for items, more in zip(self._lists(), other._lists(), strict=True):
            items.extend(more)
        self.facts |= other.facts
        self.service_changed = self.service_changed or other.service_changed
        self.tick = self.tick or other.tick
