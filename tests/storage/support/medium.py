"""What a disk holds of one file, and what it would hold if the power failed now."""

import random
from pathlib import Path

import msgspec

SECTOR = 512


class Write(msgspec.Struct, frozen=True):
    """Bytes at an offset."""

    offset: int
    data: bytes


class Truncate(msgspec.Struct, frozen=True):
    """A new, smaller size."""

    size: int


Change = Write | Truncate


class Medium:
    """The synced content of a file (None: there is no such file), and what changed since.

    A file that was deleted and made again is a new one: until that is synced, the old one may come back.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._durable: bytes | None = path.read_bytes() if path.exists() else None
        self._replaced = False
        self._changes: list[Change] = []

    def changed(self, change: Change) -> None:
        self._changes.append(change)

    def synced(self) -> None:
        """All changes, and the name, are on the disk."""
        base = None if self._replaced else self._durable
        self._durable = _applied(base or b"", self._changes)
        self._replaced = False
        self._changes = []

    def deleted(self, *, synced: bool) -> None:
        """The name is gone; `synced`: for good."""
        self._changes = []
        self._replaced = True
        if synced:
            self._durable = None

    def restore(self, kept: "Keep", dice: random.Random) -> None:
        """Makes the file what it is after the power came back."""
        if not (self._replaced or self.path.exists()):
            return  # it has another name now
        content = self._survivor(kept, dice)
        if content is None:
            self.path.unlink(missing_ok=True)
        else:
            self.path.write_bytes(content)

    def _survivor(self, kept: "Keep", dice: random.Random) -> bytes | None:
        if self._replaced and (self._durable is not None) and dice.random() < 0.5:
            return self._durable  # the old file is back
        base = None if self._replaced else self._durable
        changes = kept(self._changes, dice)
        if base is None and not changes:
            return None
        return _applied(base or b"", changes)


class Keep:
    """Which unsynced changes the disk has when the power is gone."""

    def __call__(self, changes: list[Change], dice: random.Random) -> list[Change]:
        raise NotImplementedError


class Nothing(Keep):
    """All are lost."""

    def __call__(self, changes: list[Change], dice: random.Random) -> list[Change]:
        return []


class Torn(Keep):
    """Each sector of each change is there or not, by chance."""

    def __call__(self, changes: list[Change], dice: random.Random) -> list[Change]:
        kept: list[Change] = []
        for change in changes:
            if isinstance(change, Truncate):
                kept += [change] if dice.random() < 0.5 else []
                continue
            for start in range(0, len(change.data), SECTOR):
                if dice.random() < 0.5:
                    kept.append(Write(change.offset + start, change.data[start : start + SECTOR]))
        return kept


class Newest(Keep):
    """The later ones came first: a number of the oldest is missing."""

    def __call__(self, changes: list[Change], dice: random.Random) -> list[Change]:
        return changes[dice.randint(1, len(changes)) :] if changes else []


def _applied(content: bytes, changes: list[Change]) -> bytes:
    image = bytearray(content)
    for change in changes:
        if isinstance(change, Truncate):
            del image[change.size :]
            continue
        if len(image) < change.offset:
            image.extend(bytes(change.offset - len(image)))
        image[change.offset : change.offset + len(change.data)] = change.data
    return bytes(image)
