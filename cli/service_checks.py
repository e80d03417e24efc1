"""Checks of the running service: is it there, can it start runs, and which jobs need somebody's eye."""

from cronward.cli.describe import schedule_text
from cronward.cli.findings import Finding, Level
from cronward.cli.jobs import all_jobs
from cronward.cli.session import NO_PARAMS, Session
from cronward.cli.times import relative, stamp
from cronward.protocol.errors import CronwardError
from cronward.protocol.version import VERSION
from cronward.protocol.views import JobView, ServiceStatus
from cronward.schedule import planner
from cronward.schedule.deadline import Deadline, Kind
from cronward.schedule.far_ahead import is_far_ahead

CLOCK_APART_MS = 2_000
_NAMED_MAX = 5


def check_service(session: Session) -> list[Finding]:
    """Every online check; without a scheduler that alone."""
    try:
        service = session.request("service.status", NO_PARAMS, ServiceStatus)
        jobs = all_jobs(session, include_disabled=True)
    except CronwardError as error:
        return [Finding("scheduler", Level.FAIL, error.message)]
    now_ms = session.clock.wall_ms()
    return [
        check_scheduler(service),
        check_directories(service, session),
        check_launcher(service),
        check_gateway(service),
        check_storage(service),
        check_loaded_config(service),
        check_clock(service, now_ms),
        check_flags(jobs),
        check_deadlines(jobs, now_ms),
    ]


def check_scheduler(service: ServiceStatus) -> Finding:
    text = f"process {service.pid}, release {service.version}, {service.mode}"
    if service.version != VERSION:
        return Finding("scheduler", Level.WARN, text, f"this command is of release {VERSION}; restart the service")
    if service.mode != "running":
        return Finding("scheduler", Level.WARN, text, "`cronward resume` starts runs again")
    return Finding("scheduler", Level.OK, text)


def check_directories(service: ServiceStatus, session: Session) -> Finding:
    used = (service.state_dir, service.runtime_dir)
    if used != (str(session.paths.state), str(session.paths.runtime)):
        text = f"the scheduler uses {service.state_dir} and {service.runtime_dir}"
        return Finding("directories", Level.WARN, text, "logs are read from the directories named here")
    return Finding("directories", Level.OK, "the same here and in the scheduler")


def check_launcher(service: ServiceStatus) -> Finding:
    launcher = service.launcher
    if launcher.state != "ready":
        advice = "start it (`cronward up` runs both); what is due waits"
        return Finding("launcher", Level.FAIL, launcher.state, advice)
    if launcher.cannot_start is not None:
        return Finding("launcher", Level.FAIL, f"cannot start runs: {launcher.cannot_start}", "what is due waits")
    return Finding("launcher", Level.OK, f"process {launcher.pid}, {launcher.ready} executors ready")


def check_gateway(service: ServiceStatus) -> Finding:
    gateway = service.launcher.gateway or "unknown"
    if gateway in ("none", "up"):
        return Finding("gateway", Level.OK, gateway)
    return Finding("gateway", Level.WARN, gateway, "runs that need it wait")


def check_storage(service: ServiceStatus) -> Finding:
    if service.storage_error is None:
        return Finding("storage", Level.OK, "the last commit went well")
    return Finding("storage", Level.FAIL, service.storage_error, "nothing is started until this is mended")


def check_loaded_config(service: ServiceStatus) -> Finding:
    text = f"version {service.config_version} of {service.config_path}"
    if service.config_error is None:
        return Finding("loaded configuration", Level.OK, text)
    return Finding("loaded configuration", Level.WARN, service.config_error, f"{text} stays in force")


def check_clock(service: ServiceStatus, now_ms: int) -> Finding:
    apart_ms = abs(now_ms - service.now_ms)
    if apart_ms > CLOCK_APART_MS:
        return Finding("clock", Level.WARN, f"the scheduler's clock is {apart_ms / 1000:.1f} s from this one")
    return Finding("clock", Level.OK, stamp(now_ms))


def check_flags(jobs: list[JobView]) -> Finding:
    """Jobs that are not run because something is wrong with them."""
    flagged = [f"{job.name}: {job.flag}" for job in jobs if job.flag is not None]
    if not flagged:
        return Finding("jobs", Level.OK, f"{sum(job.enabled for job in jobs)} enabled of {len(jobs)}, none flagged")
    return Finding("jobs", Level.FAIL, _some(flagged), "`cronward edit` mends a job, `cronward rm` removes it")


def check_deadlines(jobs: list[JobView], now_ms: int) -> Finding:
    """A clock that was far ahead and came back leaves deadlines far ahead; they are not taken back by themselves."""
    far = [
        f"{job.name} ({schedule_text(job.schedule)}) waits until {relative(job.state.next_run_at_ms, now_ms)}"
        for job in jobs
        if job.state.next_run_at_ms is not None and _waits_too_long(job, job.state.next_run_at_ms, now_ms)
    ]
    if not far:
        return Finding("deadlines", Level.OK, "none is far ahead of its schedule")
    return Finding("deadlines", Level.WARN, _some(far), "`cronward edit JOB --reschedule` computes it anew")


def _waits_too_long(job: JobView, next_run_ms: int, now_ms: int) -> bool:
    """Later than its schedule and what happened to it explain."""
    state = job.state
    if job.schedule is None:
        return False
    try:
        return is_far_ahead(
            job.schedule,
            Deadline(next_run_ms, Kind(state.due_kind or Kind.SLOT), state.due_slot_ms),
            job_id=job.id,
            changed_ms=state.schedule_activated_at_ms or job.created_at_ms,
            last_run_ms=state.last_run_at_ms,
            now_ms=now_ms,
        )
    except planner.Unplannable:
        return False


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - _NAMED_MAX} more" if len(texts) > _NAMED_MAX else ""
    return "; ".join(texts[:_NAMED_MAX]) + more
