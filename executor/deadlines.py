"""Named moments of the monotonic clock, for a loop that waits until the next of them."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Deadlines(Generic[Name]):
    """At most one moment per name. A handful of names, so a dict is enough."""

    def __init__(self) -> None:
        self._at_ms: dict[Name, int] = {}

    def set(self, name: Name, at_ms: int) -> None:
        """Arms `name`, or moves it."""
        self._at_ms[name] = at_ms

    def clear(self, *names: Name) -> None:
        for name in names:
            self._at_ms.pop(name, None)

    def clear_all(self) -> None:
        self._at_ms.clear()

    def __contains__(self, name: Name) -> bool:
        return name in self._at_ms

    def next_ms(self) -> int | None:
        """The earliest moment, or None."""
        return min(self._at_ms.values(), default=None)

    def pop_due(self, now_ms: int) -> Name | None:
        """Disarms and returns the earliest name that is due. One at a time: acting on it may disarm the others."""
        if not self._at_ms:
            return None
        name = min(self._at_ms, key=self._at_ms.__getitem__)
        if self._at_ms[name] > now_ms:
            return None
        del self._at_ms[name]
        return name
