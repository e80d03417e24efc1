"""Pages of jobs and runs."""

from cronward.protocol.control import ListParams, RunsParams
from cronward.protocol.errors import InvalidRequest
from cronward.protocol.views import JobList, RunList
from cronward.scheduler import job_views, run_views
from cronward.scheduler.job_commands import resolve
from cronward.scheduler.rows import RunRow, integer, job_rows, live_run, run_rows
from cronward.scheduler.run_commands import resolve_run
from cronward.scheduler.store import Row, Value
from cronward.scheduler.world import Turn

_KINDS = ("all", "at", "every", "cron")
_RUN_STATUSES = ("all", "ok", "error", "skipped")
_JOB_STATUSES = (*_RUN_STATUSES, "unknown")
_DIRECTIONS = ("asc", "desc")
_SORTS = ("nextRunAtMs", "updatedAtMs", "name")
_ENABLED = {"all": None, "enabled": 1, "disabled": 0}


def jobs(turn: Turn, params: ListParams) -> JobList:
    """cron.list."""
    filters: dict[str, Value] = {
        "enabled": _enabled(params),
        "kind": _choice("scheduleKind", params.schedule_kind, _KINDS),
        "status": _choice("lastRunStatus", params.last_run_status, _JOB_STATUSES),
        "query": params.query.lower(),
    }
    counted = turn.store.row("count_listed", **filters)
    total, scheduled = (integer(value) for value in counted) if counted else (0, 0)
    rows = job_rows(_page(turn, params, filters, scheduled))
    world = turn.world
    has_more = params.offset + len(rows) < total
    return JobList(
        jobs=[job_views.job_view(row, live_run(turn.store, row.job_id)) for row in rows],
        snapshot_revision=f"rev:{world.instance}:{world.changes}",
        total=total,
        offset=params.offset,
        limit=params.limit,
        has_more=has_more,
        next_offset=params.offset + len(rows) if has_more else None,
    )


def _page(turn: Turn, params: ListParams, filters: dict[str, Value], scheduled: int) -> list[Row]:
    _choice("sortBy", params.sort_by, _SORTS)
    _choice("sortDir", params.sort_dir, _DIRECTIONS)
    descending = params.sort_dir == "desc"
    page: dict[str, Value] = {"limit": params.limit, "offset": params.offset, **filters}
    if params.sort_by != "nextRunAtMs":
        query = "list_by_name" if params.sort_by == "name" else "list_by_updated"
        return turn.store.rows(query, desc=int(descending), **page)
    rows = turn.store.rows("list_scheduled_desc" if descending else "list_scheduled", **page)
    if len(rows) < params.limit:
        rest = {"limit": params.limit - len(rows), "offset": max(0, params.offset - scheduled)}
        rows += turn.store.rows("list_unscheduled", **(page | rest))
    return rows


def runs(turn: Turn, params: RunsParams) -> RunList:
    """cron.runs. History outlives its job: a removed job is still found by its id."""
    _choice("sortDir", params.sort_dir, _DIRECTIONS)
    name = params.id or params.job_id
    job_id = _job_id(turn, name) if name else None
    if params.run_id is not None:
        wanted = run_rows(turn.store.rows("run_by_id", run_id=resolve_run(turn, params.run_id)))
        rows = [row for row in wanted if job_id in (None, row.job_id) and (params.live or row.ended_ms is not None)]
        return _run_page(turn, params, rows, len(rows))
    page: dict[str, Value] = {
        "live": int(params.live),
        "status": _choice("status", params.status, _RUN_STATUSES),
        "query": params.query.lower(),
    }
    total = turn.store.integer("count_runs", job_id=job_id, **page)
    query = "list_runs" if job_id is None else "list_runs_of_job"
    if job_id is not None:
        page["job_id"] = job_id
    if params.sort_dir == "asc":
        query += "_asc"
    return _run_page(
        turn, params, run_rows(turn.store.rows(query, limit=params.limit, offset=params.offset, **page)), total
    )


def _run_page(turn: Turn, params: RunsParams, rows: list[RunRow], total: int) -> RunList:
    has_more = params.offset + len(rows) < total
    return RunList(
        entries=[run_views.run_view(turn.world, row) for row in rows],
        total=total,
        offset=params.offset,
        limit=params.limit,
        has_more=has_more,
        next_offset=params.offset + len(rows) if has_more else None,
    )


def _job_id(turn: Turn, name: str) -> str:
    if turn.store.row("job_has_runs", job_id=name) is not None:
        return name
    return resolve(turn, name).job_id


def _enabled(params: ListParams) -> int | None:
    if params.enabled is None:
        return None if params.include_disabled else 1
    if params.enabled not in _ENABLED:
        raise InvalidRequest("enabled", f"{params.enabled!r} is not one of {', '.join(_ENABLED)}")
    return _ENABLED[params.enabled]


def _choice(field: str, value: str, allowed: tuple[str, ...]) -> str | None:
    """The value, None for `all`."""
    if value not in allowed:
        raise InvalidRequest(field, f"{value!r} is not one of {', '.join(allowed)}")
    return None if value == "all" else value
