"""One output stream of a task: pipe, mask, digest, file up to the cap, excerpt."""

import hashlib
import os

from cronward.executor.masking import Masker
from cronward.protocol import log
from cronward.protocol.outcome import EXCERPT_HEAD_BYTES, EXCERPT_TAIL_BYTES, Stream

READ_BYTES = 64 * 1024
"""Taken per turn of the loop: a flooding task waits in its pipe, while deadlines and cancel go on acting."""

_WHOLE_EXCERPT_BYTES = EXCERPT_HEAD_BYTES + EXCERPT_TAIL_BYTES


class Output:
    """Captures what comes through one pipe. The file is made with the first byte. Memory is bounded by the excerpt."""

    def __init__(self, fd: int, file_path: str, max_bytes: int, masker: Masker) -> None:
        """`fd` is the non-blocking read end, closed by `close`. `max_bytes` 0 means no cap."""
        self.fd = fd
        self.open = True
        self.written = 0
        self._path = file_path
        self._max_bytes = max_bytes
        self._masker = masker
        self._file: int | None = None
        self._kept = 0
        self._storing = True
        self._digest = hashlib.sha256()
        self._head = bytearray()
        self._tail = b""

    @property
    def over_limit(self) -> bool:
        """Whether more was written than the cap allows to keep."""
        return 0 < self._max_bytes < self.written

    def read(self) -> bool:
        """Takes one portion from the pipe. False at end-of-file."""
        try:
            chunk = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            self.open = False
            return False
        self._take(self._masker.feed(chunk))
        return True

    def close(self) -> Stream:
        """Ends the capture and says what there was."""
        self._take(self._masker.flush())
        os.close(self.fd)
        if self._file is not None:
            os.close(self._file)
        if self.written == 0:
            return Stream()
        head, tail = excerpt(bytes(self._head), self._tail, self.written)
        return Stream(self.written, self._kept, self._digest.hexdigest(), head, tail, self._kept < self.written)

    def _take(self, data: bytes) -> None:
        if not data:
            return
        self.written += len(data)
        self._digest.update(data)
        self._head += data[: _WHOLE_EXCERPT_BYTES - len(self._head)]
        self._tail = (self._tail + data[-EXCERPT_TAIL_BYTES:])[-EXCERPT_TAIL_BYTES:]
        if self._storing:
            self._store(data[: self._max_bytes - self._kept] if self._max_bytes else data)

    def _store(self, data: bytes) -> None:
        """Appends to the file. After a failure nothing more is kept: a file with a hole in it would lie."""
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            rest = memoryview(data)
            while rest:
                count = os.write(self._file, rest)
                self._kept += count
                rest = rest[count:]
        except OSError as error:
            self._storing = False
            log.error("executor.output_lost", f"{self._path} cannot be written: {error}", kept_bytes=self._kept)


def excerpt(head: bytes, tail: bytes, written: int) -> tuple[bytes, bytes]:
    """(head, tail) to show. `head` is the beginning, up to head and tail together; a short stream is all head."""
    if written <= _WHOLE_EXCERPT_BYTES:
        return head, b""
    return _without_cut_end(head[:EXCERPT_HEAD_BYTES]), _without_cut_start(tail)


def _without_cut_end(data: bytes) -> bytes:
    """Drops the beginning of a UTF-8 letter that the cut left at the end."""
    for length in range(1, min(4, len(data) + 1)):
        byte = data[-length]
        if byte >= 0xC0:
            needed = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return data[:-length] if needed > length else data
        if byte < 0x80:
            break
    return data


def _without_cut_start(data: bytes) -> bytes:
    """Drops the rest of a UTF-8 letter that the cut left at the beginning."""
    for start in range(min(4, len(data))):
        if not 0x80 <= data[start] < 0xC0:
            return data[start:]
    return data
