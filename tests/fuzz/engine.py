"""The fuzzer: feeds one target for some seconds and fails with an input that can be fed again.

A target breaks its promise if an input raises, meets what the product itself logs as a bug, takes more than
`INPUT_MAX_MS` of CPU, or if memory grows without an end.
"""

import ctypes
import gc
import logging
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from tests.fuzz.mutation import Mutator
from tests.support.processes import memory_kib

INPUT_MAX_MS = 50
GROWTH_MAX_KIB = 64 * 1024
WARM_UP = 500
"""Inputs before memory is measured: caches fill."""

RENEW_EACH = 1000
"""Inputs between two renewals of a target."""

BUGS = frozenset({"message.failed", "request.failed", "launcher.message_failed", "launcher.duty_failed"})
"""What a process logs when it survives a bug of its own."""


class Target(Protocol):
    """Something that takes bytes from outside."""

    def make(self, mutator: Mutator) -> bytes:
        """The next input."""
        ...

    def feed(self, data: bytes) -> None:
        """Takes one input; raises if anything is wrong."""
        ...

    def renew(self) -> None:
        """Called now and then, unmeasured: state that grows by design may be dropped."""
        ...

    def close(self) -> None: ...


class Report(msgspec.Struct, frozen=True):
    """What a run found if it found nothing wrong."""

    target: str
    seed: int
    inputs: int
    slowest_ms: float
    grown_kib: int


class Broken(AssertionError):
    """A target broke its promise. The message holds what is needed to see it again."""


class _Bugs(logging.Handler):
    """Keeps the bugs that are logged, and lets all other lines go."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", "") in BUGS:
            self.lines.append(logging.Formatter().format(record))


def fuzz(name: str, target: Target, seconds: float, seed: int) -> Report:
    """Feeds `target` for that long. Raises Broken."""
    mutator = Mutator(random.Random(seed))
    inputs, slowest_ms, base_kib = 0, 0.0, 0
    end = time.monotonic() + seconds
    with _watched_log() as bugs, _collecting_by_hand():
        while time.monotonic() < end:
            if inputs % RENEW_EACH == 0:
                target.renew()
                gc.collect()
            inputs, data = inputs + 1, b""
            try:
                data = target.make(mutator)
                before = time.thread_time()
                target.feed(data)
            except Exception as error:
                raise _broken(name, seed, inputs, data, f"{type(error).__name__}: {error}") from error
            took_ms = (time.thread_time() - before) * 1000
            slowest_ms = max(slowest_ms, took_ms)
            if took_ms > INPUT_MAX_MS:
                raise _broken(name, seed, inputs, data, f"took {took_ms:.0f} ms of CPU")
            if bugs.lines:
                raise _broken(name, seed, inputs, data, bugs.lines[0])
            if inputs == WARM_UP:
                base_kib = _used_kib()
    grown_kib = _used_kib() - base_kib if base_kib else 0
    if grown_kib > GROWTH_MAX_KIB:
        raise Broken(f"{name}: grew by {grown_kib} KiB over {inputs} inputs (seed {seed})")
    return Report(name, seed, inputs, round(slowest_ms, 1), grown_kib)


def _used_kib() -> int:
    """Resident memory, without what the allocator merely keeps (glibc: inputs of all sizes leave holes)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return memory_kib(os.getpid(), "VmRSS")


def _broken(name: str, seed: int, number: int, data: bytes, problem: str) -> Broken:
    shown = data.hex() if len(data) <= 2000 else f"{data[:1000].hex()}… ({len(data)} bytes)"
    return Broken(f"{name}: {problem}\nseed {seed}, input {number}: {shown}")


@contextmanager
def _watched_log() -> Iterator[_Bugs]:
    logger = logging.getLogger("cronward")
    before = logger.handlers[:], logger.propagate, logger.level
    bugs = _Bugs()
    logger.handlers[:], logger.propagate = [bugs], False
    logger.setLevel(logging.ERROR)
    try:
        yield bugs
    finally:
        logger.handlers[:], logger.propagate = before[0], before[1]
        logger.setLevel(before[2])


@contextmanager
def _collecting_by_hand() -> Iterator[None]:
    """A collection belongs to no input."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
