"""How long a failing job waits: quick retries of what may pass, and a ladder that grows with each failure in a row."""

import hashlib
from typing import NamedTuple

import msgspec

from cronward.protocol.config import RetryConfig
from cronward.protocol.job import At, Retry, Schedule
from cronward.schedule.retry import Failure


class Preset(NamedTuple):
    """How quickly transient errors are tried again. `jitter` 0.25 means up to a quarter more or less."""

    delays_s: tuple[float, ...]
    max_retries: int
    jitter: float


PRESETS = {
    "openclaw": Preset(delays_s=(30, 60, 300), max_retries=3, jitter=0.0),
    "goclaw": Preset(delays_s=(2, 4, 8, 16, 30), max_retries=3, jitter=0.25),
}
"""The command line knows these names too."""


class RetryRules(msgspec.Struct, frozen=True):
    """The numbers in force for one job."""

    delays_ms: tuple[int, ...]
    max_retries: int
    jitter: float
    transient: frozenset[Failure]
    ladder_ms: tuple[int, ...]
    refire_gap_ms: int
    disable_after: int
    """Failures in a row that disable the job; 0 means never."""


def rules(config: RetryConfig, job: Retry | None) -> RetryRules:
    """What the job says, else the configuration, else the preset. Naming a preset on the job also sets aside delays
    that the configuration has for all."""
    own = job or Retry()
    preset = PRESETS[own.preset or config.preset]
    general = config if own.preset is None else RetryConfig()
    delays_s = own.delays_seconds or general.delays_s or preset.delays_s
    retries = _first(own.max_retries, general.max_retries, preset.max_retries)
    transient = config.transient if own.transient is None else own.transient
    return RetryRules(
        delays_ms=tuple(round(delay * 1000) for delay in delays_s),
        max_retries=round(retries),
        jitter=_first(own.jitter, general.jitter, preset.jitter),
        transient=frozenset(Failure(name) for name in transient),
        ladder_ms=tuple(round(step * 1000) for step in own.backoff_seconds or config.backoff_s),
        refire_gap_ms=round(config.refire_gap_s * 1000),
        disable_after=round(_first(own.disable_after, config.disable_after, 0)),
    )


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def retry_delay_ms(rules: RetryRules, failure: Failure, errors: int, seed: str) -> int | None:
    """From the run's end to the quick retry, `errors` being the failures in a row with this one; None if there is no
    such retry (any more). Jitter follows from `seed` alone."""
    if failure not in rules.transient or not 1 <= errors <= rules.max_retries:
        return None
    delay_ms = _step(rules.delays_ms, errors)
    return round(delay_ms * (1 + rules.jitter * (2 * _fraction(seed) - 1)))


def gate_ms(rules: RetryRules, schedule: Schedule, until_ms: int | None, now_ms: int) -> int | None:
    """Until when slots are left out since the job has failed, None if they are not. A one-shot has no other slot; and
    no window is longer than the ladder, so one that seems to be was opened by a clock that was ahead."""
    if until_ms is None or until_ms <= now_ms or isinstance(schedule, At):
        return None
    return until_ms if until_ms <= now_ms + max(rules.ladder_ms) else None


def backoff_ms(rules: RetryRules, errors: int) -> int:
    """From the run's end to the earliest next slot, after `errors` failures in a row (at least 1)."""
    return _step(rules.ladder_ms, errors)


def _step(steps: tuple[int, ...], errors: int) -> int:
    return steps[min(errors, len(steps)) - 1]


def _fraction(seed: str) -> float:
    """In [0, 1), the same for the same seed."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4]) / 2**32
