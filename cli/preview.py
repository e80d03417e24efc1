"""`next`: when something will run."""

import os
from datetime import tzinfo
from zoneinfo import ZoneInfo

import click

from cronward.cli.describe import facts_text, schedule_text, slot_lines
from cronward.cli.scheduleflags import repeating_fields
from cronward.cli.session import Session, print_json, with_requests
from cronward.cli.text import safe
from cronward.protocol import config
from cronward.protocol.control import JobRef
from cronward.protocol.conversion import convert, shown
from cronward.protocol.errors import Code, CronwardError, InvalidRequest
from cronward.protocol.job import Cron, Every, Schedule
from cronward.protocol.views import JobView, SlotView
from cronward.schedule import planner
from cronward.schedule.at import at_in_zone, is_beyond_calendar, parse_at
from cronward.schedule.duration import interval
from cronward.schedule.explain import explain

_PREVIEW_ID = "00000000-0000-4000-8000-000000000000"
"""Stands for the id that a job has not yet: H and stagger depend on it."""


@click.command("next")
@click.argument("what", metavar="EXPR|JOB")
@click.option("--tz", metavar="ZONE", help="Zone of an expression; by default the configured one.")
@click.option("--from", "start", metavar="TIME", help="Begin after this time (ISO 8601) instead of now.")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many.")
@click.option("--explain", "in_words", is_flag=True, help="Say in words what the schedule means.")
@with_requests
def next_slots(session: Session, what: str, tz: str | None, start: str | None, count: int, in_words: bool) -> int:
    """Show the coming slots of an expression, or of a job.

    An expression ('every 10m', '0 9 * * 1', @daily) needs no scheduler. What a change of the clocks does to a slot is
    said beside it.

    \b
      cronward next '30 2 * * *' --tz America/New_York --from 2026-03-07
      cronward next '0 9 * * mon-fri' -n 10
      cronward next '0 9 13 * 5' --explain
      cronward next backup --json
    """
    now_ms = session.clock.wall_ms()
    fields = repeating_fields(what, tz)
    job: JobView | None = None
    job_id, known = _PREVIEW_ID, list[SlotView]()
    if fields is None:
        job, schedule = _job(session, what, tz)
        job_id, known = job.id, job.next_slots if start is None else []
        after_ms = now_ms if start is None else _start_ms(start, schedule, "UTC")
    else:
        default_tz = _default_tz(session)
        raw: Cron | Every = convert(fields, Cron | Every, "schedule")  # type: ignore[arg-type]  # a union is no type[T]
        after_ms = now_ms if start is None else _start_ms(start, raw, default_tz)
        schedule = planner.settle(raw, job_id=_PREVIEW_ID, now_ms=after_ms, default_tz=default_tz)
    slots = [*known[:count], *_preview(schedule, job_id, known[-1].at_ms if known else after_ms, count - len(known))]
    words = explain(schedule, job_id) if in_words else None
    if session.as_json:
        answer = {"schedule": schedule, "slots": slots}
        said = {"words": words, "remark": _off(job)}
        print_json(answer | {key: value for key, value in said.items() if value is not None})
    else:
        click.echo(slots_text(schedule, slots, now_ms, has_id=job is not None, words=words, remark=_off(job)))
    return 0


def _off(job: JobView | None) -> str | None:
    """Why nothing of what is listed will run."""
    if job is not None and job.flag is not None:
        return f"the job is flagged and not run: {safe(job.flag)}"
    return None if job is None or job.enabled else "the job is disabled; these are the slots that it would have"


def _job(session: Session, job: str, tz: str | None) -> tuple[JobView, Schedule]:
    if tz is not None:
        raise click.UsageError("--tz goes with an expression; a job has its own zone.")
    try:
        view = session.request("cron.get", JobRef(id=job), JobView)
    except CronwardError as error:
        if error.code is Code.JOB_NOT_FOUND and (len(job.split()) > 1 or job[:1] in "+0123456789"):
            raise click.UsageError(
                f"{shown(job)} is neither a job nor a repeating schedule: use 'every 10m', @daily, or an expression of"
                " 5 to 7 fields. What is to run once has no slots to show."
            ) from None
        raise
    if view.schedule is None:
        raise CronwardError(Code.INVALID_REQUEST, f"the schedule of {job!r} cannot be read: {view.flag}", jobId=view.id)
    return view, view.schedule


def _default_tz(session: Session) -> str:
    path = config.config_path(os.environ, session.options.config)
    return config.load(path, os.environ, must_exist=config.is_named(os.environ, session.options.config)).default_tz


def _start_ms(text: str, schedule: Schedule, default_tz: str) -> int:
    """A time without offset is read in the schedule's own zone."""
    tz = schedule.tz if isinstance(schedule, Cron) else None
    try:
        start_ms = parse_at(at_in_zone(text, tz or default_tz))
    except InvalidRequest as error:
        raise click.UsageError(f"Invalid --from: {error.problem}.") from None
    if is_beyond_calendar(start_ms):
        raise click.UsageError(f"Invalid --from {text!r}: the calendar goes from the year 1 to 9999.")
    return start_ms


def _preview(schedule: Schedule, job_id: str, after_ms: int, count: int) -> list[SlotView]:
    try:
        return planner.preview(schedule, job_id=job_id, after_ms=after_ms, count=count)
    except planner.Unplannable as error:
        raise CronwardError(Code.INVALID_REQUEST, str(error)) from None


def slots_text(
    schedule: Schedule,
    slots: list[SlotView],
    now_ms: int,
    *,
    has_id: bool,
    words: str | None = None,
    remark: str | None = None,
) -> str:
    """The schedule as it is understood, and its slots."""
    stagger = schedule.stagger_ms if isinstance(schedule, Cron) else None
    spread = None
    if stagger:
        spread = f"each job of this kind runs up to {interval(stagger)} later, the same for each slot"
        if not has_id:
            spread += "; these are of an example (`--exact` of `cronward add` turns it off)"
    facts = [("schedule", schedule_text(schedule)), ("in words", words), ("stagger", spread), ("but", remark)]
    return f"{facts_text(facts)}\n{slot_lines(slots, _zone(schedule), now_ms) or 'no slot to come'}"


def _zone(schedule: Schedule) -> tzinfo | None:
    return ZoneInfo(schedule.tz) if isinstance(schedule, Cron) and schedule.tz else None
