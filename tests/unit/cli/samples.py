"""Views as a scheduler might give them."""

import msgspec

from cronward.protocol.job import Command, Cron, Schedule
from cronward.protocol.views import (
    JobStateView,
    JobView,
    LauncherView,
    RunView,
    ServiceStatus,
    SlotView,
)

NOW_MS = 1_796_184_215_000
"""2026-12-02 04:03:35 UTC."""


def service_status(**changes: object) -> ServiceStatus:
    made = ServiceStatus(
        version="0.1.0",
        instance="one",
        pid=100,
        started_at_ms=NOW_MS,
        now_ms=NOW_MS,
        mode="running",
        paused_by=None,
        state_dir="/s",
        runtime_dir="/r",
        config_path="/c",
        config_version=1,
        config_error=None,
        storage_error=None,
        default_tz="UTC",
        launcher=LauncherView(state="ready", epoch=1, pid=101, gateway="none", ready=2),
        capacity=8,
        active=0,
        queued=0,
        jobs=0,
        jobs_enabled=0,
        jobs_flagged=0,
        next_wake_at_ms=None,
        notices=[],
    )
    return msgspec.structs.replace(made, **changes)


def job(
    name: str = "backup",
    *,
    schedule: Schedule | None = None,
    next_ms: int | None = NOW_MS + 240_000,
    job_id: str = "02318ddf-d1a5-44cf-8aa6-77662a1e07f3",
    enabled: bool = True,
    status: str = "idle",
) -> JobView:
    return JobView(
        id=job_id,
        name=name,
        enabled=enabled,
        status=status,
        config_revision="sha256:abc",
        created_at_ms=NOW_MS,
        updated_at_ms=NOW_MS,
        state=JobStateView(next_run_at_ms=next_ms),
        schedule=schedule or Cron("*/5 * * * *", "UTC", 0),
        payload=Command(["/bin/echo", "hi"]),
        next_slots=[SlotView(next_ms, "")] if next_ms is not None else [],
    )


def run(**changes: object) -> RunView:
    made = RunView(
        run_id="cron-slot-v1.abc",
        key="4f1d2c8a90b14f1d2c8a90b14f1d2c8a",
        job_id="j",
        job_name="backup",
        kind="slot",
        state="ok",
        ts=NOW_MS,
        slot_ms=NOW_MS - 60_000,
        requested_at_ms=NOW_MS - 60_000,
        action="finished",
        status="ok",
        run_at_ms=NOW_MS - 60_000,
        duration_ms=1_200,
        exit_code=0,
    )
    return msgspec.structs.replace(made, **changes)
