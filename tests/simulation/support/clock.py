"""Virtual time: both clocks of the simulated machine, and what is to happen at which moment."""

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class VirtualClock:
    """Monotonic time is moved by the agenda alone. Wall time is that, plus how far it has been set off: a step of the
    clock and a suspended machine look the same to a process."""

    def __init__(self, wall_ms: int) -> None:
        self._mono_ms = 1_000_000
        self._ahead_ms = wall_ms - self._mono_ms

    def wall_ms(self) -> int:
        return self._mono_ms + self._ahead_ms

    def mono_ms(self) -> int:
        return self._mono_ms

    def step(self, ms: int) -> None:
        """Somebody sets the wall clock, either way."""
        self._ahead_ms += ms

    def pass_to(self, mono_ms: int) -> None:
        self._mono_ms = max(self._mono_ms, mono_ms)


class Agenda:
    """Actions in the order of their monotonic time, then of their being planned."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._planned: list[tuple[int, int, Action]] = []
        self._numbers = count()

    def after(self, ms: int, action: Action) -> None:
        self.at(self.clock.mono_ms() + ms, action)

    def at(self, mono_ms: int, action: Action) -> None:
        heapq.heappush(self._planned, (mono_ms, next(self._numbers), action))

    def next_ms(self) -> int | None:
        """When the next action is planned."""
        return self._planned[0][0] if self._planned else None

    def run_next(self) -> None:
        """Passes to the next action's moment and does it."""
        mono_ms, _, action = heapq.heappop(self._planned)
        self.clock.pass_to(mono_ms)
        action()
