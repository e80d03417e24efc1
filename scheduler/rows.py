"""Rows as the decisions see them. Column order is that of the queries that select them."""

from collections.abc import Iterable

import msgspec

from cronward.protocol import job as jobs
from cronward.schedule.deadline import Deadline, Kind
from cronward.scheduler.store import Row, Store, Value


class JobRow(msgspec.Struct, frozen=True, array_like=True):
    """A job with its state: `job_by_id`, `due_jobs`."""

    position: int
    job_id: str
    name: str
    enabled: bool
    definition: bytes
    revision: str
    created_ms: int
    updated_ms: int
    next_due_ms: int | None
    flag: str | None
    last_run_ms: int | None
    last_duration_ms: int | None
    last_status: str | None
    last_reason: str | None
    last_error: str | None
    consecutive_errors: int
    consecutive_skipped: int
    consumed_slots: int
    schedule_errors: int
    due_kind: Kind = Kind.SLOT
    due_slot_ms: int | None = None
    backoff_until_ms: int | None = None
    auto_disabled: str | None = None
    auto_disabled_ms: int | None = None
    schedule_activated_ms: int | None = None
    changed_while_active: bool = False

    @property
    def deadline(self) -> Deadline | None:
        return None if self.next_due_ms is None else Deadline(self.next_due_ms, self.due_kind, self.due_slot_ms)

    @property
    def scheduled_ms(self) -> int:
        """When the schedule came into force."""
        return self.created_ms if self.schedule_activated_ms is None else self.schedule_activated_ms

    def decode(self) -> jobs.Definition:
        """The definition. Raises msgspec.DecodeError for a row that is damaged or of a newer release."""
        return jobs.decode(self.definition)


class RunRow(msgspec.Struct, frozen=True, array_like=True):
    """A run of the ledger: `run_by_id`, `live_runs`."""

    arrival: int
    run_id: str
    run_key: str
    job_id: str
    job_position: int
    job_name: str
    kind: str
    mode: str | None
    requester: str | None
    slot_ms: int
    requested_ms: int
    state: str
    reason: str | None
    message: str | None
    activated_ms: int | None
    instance: str | None
    epoch: int | None
    boot_id: str | None
    started_ms: int | None
    ended_ms: int | None
    outcome: bytes | None
    late_outcome: str | None
    cancel_by: str | None
    cancel_why: str | None
    cancel_ms: int | None


class ActiveRow(msgspec.Struct, frozen=True, array_like=True):
    """An active run in short: `active_runs`."""

    run_id: str
    job_id: str
    instance: str
    epoch: int
    boot_id: str
    cancel_why: str | None
    cancel_ms: int | None


class LiveRow(msgspec.Struct, frozen=True, array_like=True):
    """The live run of a job: `live_run_of_job`."""

    run_id: str
    state: str
    kind: str
    requested_ms: int
    activated_ms: int | None
    mode: str | None


def job_row(row: Row) -> JobRow:
    return msgspec.convert(row, JobRow, strict=False)


def job_rows(rows: Iterable[Row]) -> list[JobRow]:
    return [job_row(row) for row in rows]


def run_rows(rows: Iterable[Row]) -> list[RunRow]:
    return [msgspec.convert(row, RunRow) for row in rows]


def find_job(store: Store, job_id: str) -> JobRow | None:
    row = store.row("job_by_id", job_id=job_id)
    return job_row(row) if row else None


def find_run(store: Store, run_id: str) -> RunRow | None:
    row = store.row("run_by_id", run_id=run_id)
    return msgspec.convert(row, RunRow) if row else None


def served_ahead(store: Store, job_id: str, now_ms: int) -> frozenset[int]:
    """The slots later than now that have a run, since the clock was ahead."""
    return frozenset(integer(row[0]) for row in store.rows("slots_served_ahead", job_id=job_id, now_ms=now_ms))


def live_run(store: Store, job_id: str) -> LiveRow | None:
    row = store.row("live_run_of_job", job_id=job_id)
    return msgspec.convert(row, LiveRow) if row else None


def active_runs(store: Store) -> list[ActiveRow]:
    return [msgspec.convert(row, ActiveRow) for row in store.rows("active_runs")]


def text(value: Value) -> str:
    """A column that the schema promises to be text."""
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value


def integer(value: Value) -> int:
    """A column that the schema promises to be an integer."""
    if not isinstance(value, int):
        raise TypeError(f"expected an integer, got {type(value).__name__}")
    return value
