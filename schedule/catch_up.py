"""Catch-up: what happens to slots that came while nobody could serve them (stopped, paused, suspended, clock set)."""

import enum
from typing import NamedTuple

import msgspec

from cronward.protocol.config import CatchUpConfig
from cronward.protocol.job import At, CatchUp, Schedule
from cronward.schedule.deadline import Deadline, Kind
from cronward.schedule.missed import last_slots_ms
from cronward.schedule.planner import next_slot_ms


class Policy(enum.StrEnum):
    """Which of a job's missed slots are run."""

    LATEST = "latest"
    NONE = "none"
    ALL = "all"


class CatchUpRules(msgspec.Struct, frozen=True):
    """The numbers in force for one job. `max_age_ms` 0 means any age."""

    policy: Policy
    max_runs: int
    max_age_ms: int


SPACING_MIN_MS = 1_000
"""Between the missed slots of one job, whatever is configured: the run of the one before is waited for."""


class Pace(msgspec.Struct, frozen=True):
    """How quickly missed slots are run: `immediate` jobs at once, then one each `spacing_ms`; work that waits for
    an agent `agent_delay_ms` later."""

    immediate: int
    spacing_ms: int
    agent_delay_ms: int


class Missed(NamedTuple):
    """The missed slots of one job that its policy wants run, oldest first, and its next slot that is still to come."""

    wanted_ms: list[int]
    natural_ms: int | None


def rules(config: CatchUpConfig, job: CatchUp | None) -> CatchUpRules:
    """What the job says, else the configuration."""
    own = job or CatchUp()
    age_s = config.max_age_s if own.max_age_seconds is None else own.max_age_seconds
    return CatchUpRules(Policy(own.policy or config.policy), own.max_runs or config.max_runs, round(age_s * 1000))


def pace(config: CatchUpConfig) -> Pace:
    return Pace(config.immediate, round(config.spacing_s * 1000), round(config.agent_delay_s * 1000))


def missed(schedule: Schedule, rules: CatchUpRules, *, job_id: str, oldest_ms: int, now_ms: int) -> Missed:
    """`oldest_ms` is the deadline that was not served. A one-shot is not left out by `none`: it has no other slot.
    Raises Unplannable."""
    natural_ms = next_slot_ms(schedule, job_id=job_id, after_ms=now_ms)
    if isinstance(schedule, At):
        slots = [oldest_ms]
    elif rules.policy is Policy.NONE:
        slots = []
    else:
        count = rules.max_runs if rules.policy is Policy.ALL else 1
        slots = last_slots_ms(schedule, job_id=job_id, from_ms=oldest_ms, now_ms=now_ms, count=count)
    young_ms = now_ms - rules.max_age_ms if rules.max_age_ms else oldest_ms
    return Missed([slot for slot in slots if slot >= young_ms], natural_ms)


class Queue:
    """Gives the jobs that missed slots their places, in the order in which they ask: the oldest first."""

    def __init__(self, pace: Pace, base_ms: int) -> None:
        self._pace = pace
        self._base_ms = base_ms
        self._taken = 0
        self._later = 0

    def deadline(self, slot_ms: int, natural_ms: int | None, *, waits_for_agent: bool = False) -> Deadline | None:
        """When the missed slot is run; None if that would reach the job's next slot, which then stands alone."""
        if not waits_for_agent and self._taken < self._pace.immediate:
            self._taken += 1
            return Deadline(self._base_ms, Kind.CATCH_UP, slot_ms)
        delay_ms = self._pace.spacing_ms * (self._later + 1)
        if waits_for_agent:
            delay_ms = self._pace.agent_delay_ms + self._pace.spacing_ms * self._later
        due_ms = self._base_ms + delay_ms
        if natural_ms is not None and due_ms >= natural_ms:
            return None
        self._later += 1
        return Deadline(due_ms, Kind.CATCH_UP, slot_ms)


def following(missed_slots: Missed, pace: Pace, now_ms: int) -> Deadline | None:
    """The deadline after a missed slot was requested: the next one that is wanted, unless that would reach the job's
    next slot. None if the job has no further slot at all."""
    if missed_slots.wanted_ms:
        due_ms = now_ms + max(pace.spacing_ms, SPACING_MIN_MS)
        if missed_slots.natural_ms is None or due_ms < missed_slots.natural_ms:
            return Deadline(due_ms, Kind.CATCH_UP, missed_slots.wanted_ms[0])
    return None if missed_slots.natural_ms is None else Deadline(missed_slots.natural_ms)
