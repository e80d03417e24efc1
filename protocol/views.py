"""What clients see of jobs, runs and the service: results of the control and query sockets. JSON, camelCase.

New fields may appear at any time; readers ignore what they do not know.
"""

import msgspec

from cronward.protocol.job import CatchUp, Delivery, Owner, Pacing, Payload, Retry, Schedule
from cronward.protocol.why import Cause


class SlotView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A coming slot or other run: the instant, the same in the job's zone with offset, and a note where a zone change
    moved it, or where it is no slot at that time (a retry, the end of a backoff, a missed slot that is run late)."""

    at_ms: int
    local: str
    note: str | None = None


class AutoDisabledView(msgspec.Struct, frozen=True, rename="camel"):
    """Why and when Cronward switched the job off: consecutive-failures or schedule-errors, and how many in a row."""

    reason: str
    at_ms: int
    consecutive_errors: int


class JobStateView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What running has done to a job. `due_kind` says why it is due at `next_run_at_ms`: slot, retry, backoff,
    catch_up or paced; `due_slot_ms` is the slot that it stands for, if that is another instant."""

    next_run_at_ms: int | None = None
    running_at_ms: int | None = None
    queued_at_ms: int | None = None
    live_run_id: str | None = None
    last_run_at_ms: int | None = None
    last_duration_ms: int | None = None
    last_run_status: str | None = None
    last_reason: str | None = None
    last_error: str | None = None
    consecutive_errors: int = 0
    consecutive_skipped: int = 0
    consumed_slots: int = 0
    schedule_error: str | None = None
    schedule_error_count: int = 0
    due_kind: str = "slot"
    due_slot_ms: int | None = None
    backoff_until_ms: int | None = None
    schedule_activated_at_ms: int | None = None
    auto_disabled: AutoDisabledView | None = None


class JobView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A job: its definition, its revision, its state. `status` is running, queued, flagged, disabled, or the last
    run's status, or idle. `flag` says why a damaged or unschedulable job is not run. `name_shared`, in answers to add
    and update: another job has the name too, so that only its id says which is meant."""

    id: str
    name: str
    enabled: bool
    status: str
    config_revision: str
    created_at_ms: int
    updated_at_ms: int
    state: JobStateView
    schedule: Schedule | None = None
    payload: Payload | None = None
    delete_after_run: bool | None = None
    display_name: str | None = None
    declaration_key: str | None = None
    description: str | None = None
    owner: Owner | None = None
    agent_id: str | None = None
    session_key: str | None = None
    session_target: str | None = None
    wake_mode: str | None = None
    delivery: Delivery | None = None
    retry: Retry | None = None
    catch_up: CatchUp | None = None
    pacing: Pacing | None = None
    next_run_at_ms: int | None = None
    last_run_at_ms: int | None = None
    last_run_status: str | None = None
    last_run_error: str | None = None
    flag: str | None = None
    tz: str | None = None
    next_slots: list[SlotView] = []
    name_shared: bool = False


class AddResult(msgspec.Struct, frozen=True, rename="camel"):
    """Answer to cron.add with a declarationKey. `updated` False with `created` False: nothing differed."""

    created: bool
    updated: bool
    job: JobView


class JobList(msgspec.Struct, frozen=True, rename="camel"):
    """One page of jobs. A client that pages starts again when `snapshot_revision` changes."""

    jobs: list[JobView]
    snapshot_revision: str
    total: int
    offset: int
    limit: int
    has_more: bool
    next_offset: int | None


class StreamView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One output stream: sizes, digest, and the excerpt with what is not UTF-8 replaced."""

    written: int = 0
    kept: int = 0
    sha256: str = ""
    head: str = ""
    tail: str = ""
    truncated: bool = False


class CancelView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who asked for the end of a run, why and when."""

    by: str
    why: str
    at_ms: int


class RunView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One run. `key` names its directory; `state` is queued, active, ok, error or skipped; `status` is the last three.

    `action` is queued, started or finished. `ts` is the time of the last change of state. `waiting` says what a queued
    run waits for; `unverified_since_ms` and `stalled_since_ms` mark an active one that nobody vouched for since then.
    """

    run_id: str
    key: str
    job_id: str
    job_name: str
    kind: str
    state: str
    ts: int
    slot_ms: int
    requested_at_ms: int
    action: str
    mode: str | None = None
    requester: str | None = None
    status: str | None = None
    completion_status: str | None = None
    reason: str | None = None
    error: str | None = None
    summary: str | None = None
    delivery_status: str | None = None
    activated_at_ms: int | None = None
    run_at_ms: int | None = None
    ended_at_ms: int | None = None
    duration_ms: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    stdout: StreamView | None = None
    stderr: StreamView | None = None
    left: int = 0
    cpu_ms: int | None = None
    max_rss_kib: int | None = None
    cancel: CancelView | None = None
    waiting: str | None = None
    phase: str | None = None
    unverified_since_ms: int | None = None
    stalled_since_ms: int | None = None
    late_outcome: str | None = None


class RunList(msgspec.Struct, frozen=True, rename="camel"):
    """One page of runs."""

    entries: list[RunView]
    total: int
    offset: int
    limit: int
    has_more: bool
    next_offset: int | None


class WhyView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Answer to cron.why: `cause` and what belongs to it (see `why.Cause`).

    `slot_ms` is the slot in question, None if there is none at `asked_ms`. `late_ms` is from the slot to the start of
    `run`, `delayed_by` what held it up. `since_ms`, `until_ms` and `by` say when and who; `detail` and `note` are for
    people. `nearest` are the slots before and after by the schedule that was in force, `tz` its zone.
    """

    job_id: str
    job_name: str | None
    asked_ms: int
    now_ms: int
    cause: Cause
    tz: str = "UTC"
    slot_ms: int | None = None
    late_ms: int | None = None
    delayed_by: Cause | None = None
    run: RunView | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    by: str | None = None
    detail: str | None = None
    note: str | None = None
    nearest: list[SlotView] = []


class RunAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Answer to cron.run: either `enqueued` with a run id, or `ran` False with a reason (already-running, not-due,
    disabled, stopped, invalid-spec)."""

    ok: bool
    process_instance_id: str
    enqueued: bool = False
    run_id: str | None = None
    ran: bool | None = None
    reason: str | None = None


class CancelAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """`result` is cancelled (it was queued), requested (its executor will be told), abandoned, or too_late."""

    run_id: str
    result: str


class RemoveAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """`cancelling` names the run that was asked to end."""

    ok: bool
    removed: bool
    cancelling: str | None = None


class CronStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Answer to cron.status."""

    enabled: bool
    triggers_enabled: bool
    store_path: str
    storage: str
    sqlite_path: str
    jobs: int
    next_wake_at_ms: int | None


class LauncherView(msgspec.Struct, frozen=True, rename="camel"):
    """What the scheduler knows of the launcher. `state` is absent, registering, reconciling, ready or leaving."""

    state: str
    epoch: int
    pid: int | None = None
    gateway: str | None = None
    ready: int = 0
    busy: int = 0
    starting: int = 0
    adopted: int = 0
    waiting: int = 0
    cannot_start: str | None = None


class NoticeView(msgspec.Struct, frozen=True, rename="camel"):
    """Something an operator should know, e.g. which runs a recovery found interrupted."""

    id: str
    kind: str
    text: str
    runs: list[str]
    at_ms: int


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Answer to service.status. `mode` is running, paused, draining or stopping. `deadlines_far_ahead` counts jobs that
    wait for more than two slots of theirs since the clock was set back. `held_by` and `held_at_ms` are who paused or
    drained it, and when; None while it is neither. `paused_by` is kept over restarts."""

    version: str
    instance: str
    pid: int
    started_at_ms: int
    now_ms: int
    mode: str
    paused_by: str | None
    state_dir: str
    runtime_dir: str
    config_path: str
    config_version: int
    config_error: str | None
    storage_error: str | None
    default_tz: str
    launcher: LauncherView
    capacity: int
    active: int
    queued: int
    jobs: int
    jobs_enabled: int
    jobs_flagged: int
    next_wake_at_ms: int | None
    notices: list[NoticeView]
    deadlines_far_ahead: int = 0
    held_by: str | None = None
    held_at_ms: int | None = None


class NextSlot(msgspec.Struct, frozen=True, rename="camel"):
    """A coming slot of a job."""

    job_id: str
    job_name: str
    at_ms: int


class StatusSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """Answer to status.snapshot: everything as of event `seq` of `instance`."""

    instance: str
    seq: int
    service: ServiceStatus
    live: list[RunView]
    next_slots: list[NextSlot]


class DrainAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Runs that are still active, and how many of them were asked to end."""

    active: int
    queued: int
    cancelled: int


class BackupAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A finished backup."""

    path: str
    bytes: int
    pages: int
    duration_ms: int
