"""A disk that fails on purpose: SQLite's own file access, counted, with one planned fault.

Files are real, so everything else sees them; what the disk would hold without power is kept beside (`medium`).
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from tests.storage.support.faults import CHANGING, DEADLY, KEPT, Fault, Op
from tests.storage.support.medium import Medium, Truncate, Write

_CREATE = apsw.SQLITE_OPEN_CREATE

_CODES: dict[Op, int] = {
    Op.ACCESS: apsw.SQLITE_IOERR_ACCESS,
    Op.LOCK: apsw.SQLITE_IOERR_LOCK,
    Op.SIZE: apsw.SQLITE_IOERR_FSTAT,
    Op.READ: apsw.SQLITE_IOERR_READ,
    Op.WRITE: apsw.SQLITE_IOERR_WRITE,
    Op.TRUNCATE: apsw.SQLITE_IOERR_TRUNCATE,
    Op.SYNC: apsw.SQLITE_IOERR_FSYNC,
    Op.DELETE: apsw.SQLITE_IOERR_DELETE,
}


class Disk(apsw.VFS):
    """The default file access of SQLite while it is entered. Between `watch` and `rest` operations are counted, and
    the fault happens at its index. A dead disk does nothing more for its process until `revive`."""

    def __init__(self) -> None:
        self.operations: list[Op] = []
        self.dead = False
        self.at_death: Callable[[], None] = lambda: None
        self.met = 0
        """How many operations failed."""
        self._media: dict[str, Medium] = {}
        self._watching = False
        self._fault: Fault | None = None
        self._index = 0
        self._on = False
        self._dice = random.Random(0)
        super().__init__("failing", "unix", makedefault=True)

    def __enter__(self) -> Self:
        self._real = apsw.Connection
        setattr(apsw, "Connection", QuietlyClosed)  # noqa: B010 - mypy knows that a type cannot be assigned
        return self

    def __exit__(self, *_: object) -> None:
        setattr(apsw, "Connection", self._real)  # noqa: B010
        self.unregister()

    # the plan

    def watch(self, fault: Fault | None = None, index: int = 0, seed: int = 0) -> None:
        """Counts from now on; `fault` happens at the operation `index`."""
        self.operations = []
        self.met = 0
        self._fault, self._index, self._dice = fault, index, random.Random(seed)
        self._watching, self._on = True, False

    def rest(self) -> None:
        """Stops counting. A deadly fault that has not happened yet happens now, at the end."""
        self._watching = False
        if self._fault in DEADLY and not self.dead:
            self._die()

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """What the test itself reads inside is neither counted nor failed."""
        before = self._watching, self._on
        self._watching = self._on = False
        try:
            yield
        finally:
            self._watching, self._on = before

    def mend(self) -> None:
        """The disk has space, and works, again."""
        self._on = False
        self._fault = None

    def revive(self) -> None:
        """The files as the next process finds them: after a power failure only what was synced is sure to be there."""
        kept = KEPT.get(self._fault) if self._fault else None
        if kept is not None:
            for medium in self._media.values():
                medium.restore(kept, self._dice)
        self._media.clear()
        self.dead = False
        self._watching = False
        self.mend()

    # what happens at each operation

    def passes(self, op: Op, name: str) -> None:
        """Counts an operation and lets it go on, or fails it."""
        if self.dead:
            raise failure(op)
        if self._watching:
            self._on = self._on or (self._fault is not None and len(self.operations) == self._index)
            self.operations.append(op)
        if not self._on:
            return
        match self._fault:
            case Fault.CRASH | Fault.POWER_LOST | Fault.POWER_TORN | Fault.POWER_REORDERED:
                self._die()
            case Fault.IO_ERROR:
                self._on = False
            case Fault.IO_ERRORS:
                pass
            case Fault.READ_ONLY if op in CHANGING - {Op.SYNC}:
                pass
            case _:
                return
        self.met += 1
        raise failure(op)

    def written(self, name: str, data: bytes, offset: int, size: int) -> bytes:
        """How much of a write reaches the file. The caller fails if that is not all."""
        if not self._on:
            return data
        match self._fault:
            case Fault.CRASH_TORN:
                return data[: self._dice.randrange(len(data))]
            case Fault.FULL_ONCE:
                self._on = False
                return data[: self._dice.randrange(len(data))]
            case Fault.FULL if offset + len(data) > size:
                return data[: max(0, size - offset)]
        return data

    def cut_short(self) -> Exception:
        """A write was cut short: why."""
        self.met += 1
        if self._fault is Fault.CRASH_TORN:
            self._die()
            return failure(Op.WRITE)
        return apsw.FullError("database or disk is full")

    @property
    def syncs(self) -> bool:
        return not (self._on and self._fault is Fault.SYNC_LIES)

    def _die(self) -> None:
        self.dead = True
        self._watching = False
        self.at_death()

    def medium(self, name: str) -> Medium:
        if name not in self._media:
            self._media[name] = Medium(Path(name))
        return self._media[name]

    # apsw.VFS

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        text = name.filename() if isinstance(name, apsw.URIFilename) else name
        if text is not None:
            self.passes(Op.OPEN, text)
            self.medium(text)
        return File(self, text, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.passes(Op.DELETE, filename)
        self.medium(filename).deleted(synced=syncdir and self.syncs)
        super().xDelete(filename, False)

    def xAccess(self, pathname: str, flags: int) -> bool:
        self.passes(Op.ACCESS, pathname)
        return super().xAccess(pathname, flags)

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: TracebackType | None
    ) -> bool:
        """SQLite asked for something whose failure it ignores."""
        return True


class QuietlyClosed(apsw.Connection):
    """SQLite closes a connection whatever the disk says. apsw raises what a file access in Python raised meanwhile."""

    def close(self, force: bool = False) -> None:
        with contextlib.suppress(apsw.IOError, apsw.FullError, apsw.CantOpenError, SystemError):
            super().close(force)


class File(apsw.VFSFile):
    """One open file."""

    def __init__(self, disk: Disk, text: str | None, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = text or ""
        super().__init__("unix", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.passes(Op.READ, self._name)
        return super().xRead(amount, offset)

    def xFileSize(self) -> int:
        self._disk.passes(Op.SIZE, self._name)
        return super().xFileSize()

    def xLock(self, level: int) -> None:
        self._disk.passes(Op.LOCK, self._name)
        super().xLock(level)

    def xWrite(self, data: bytes, offset: int) -> None:
        disk = self._disk
        disk.passes(Op.WRITE, self._name)
        part = disk.written(self._name, data, offset, super().xFileSize())
        if part:
            super().xWrite(part, offset)
            disk.medium(self._name).changed(Write(offset, bytes(part)))
        if len(part) < len(data):
            raise disk.cut_short()

    def xTruncate(self, newsize: int) -> None:
        self._disk.passes(Op.TRUNCATE, self._name)
        super().xTruncate(newsize)
        self._disk.medium(self._name).changed(Truncate(newsize))

    def xSync(self, flags: int) -> None:
        self._disk.passes(Op.SYNC, self._name)
        if self._disk.syncs:
            self._disk.medium(self._name).synced()

    def excepthook(
        self, etype: type[BaseException] | None, evalue: BaseException | None, etraceback: TracebackType | None
    ) -> bool:
        """SQLite asked for something whose failure it ignores."""
        return True


def failure(op: Op) -> Exception:
    """What SQLite gets when an operation fails."""
    if op is Op.OPEN:
        return apsw.CantOpenError("unable to open database file")
    error = apsw.IOError(f"disk I/O error ({op})")
    setattr(error, "extendedresult", _CODES[op])  # noqa: B010 - apsw reads it, its types do not know it
    return error
