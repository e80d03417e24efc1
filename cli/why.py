"""`why`: what became of a slot, past or to come."""

import re
from datetime import tzinfo

import click

from cronward.cli.describe import facts_text, named_zone, run_state
from cronward.cli.session import Session, print_json, with_requests
from cronward.cli.text import safe
from cronward.cli.times import duration, relative, stamp
from cronward.protocol.control import WhyParams
from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import DATE_MAX_MS
from cronward.protocol.views import RunView, WhyView
from cronward.protocol.why import Cause
from cronward.schedule.at import around_in_zone_ms
from cronward.schedule.duration import parse_duration_ms

_RELATIVE = re.compile(r"([+-])(.+)")
_PAST = re.compile(r"-[0-9.].*", re.ASCII)
_NO_SECONDS = re.compile(r".*[Tt ]\d\d:\d\d(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_FRACTION = re.compile(r"[.,]\d")


class WhyCommand(click.Command):
    """Takes `-2h` for the time that it is, not for the options -2 and -h."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        times = [arg for arg in args if _PAST.fullmatch(arg)]
        if times and "--" not in args:
            args = [*(arg for arg in args if arg not in times), "--", *times]
        return super().parse_args(ctx, args)


@click.command(cls=WhyCommand)
@click.argument("job")
@click.argument("time", required=False)
@with_requests
def why(session: Session, job: str, time: str | None) -> int:
    """Say what became of a slot of a job: did it run, how late, and if not, why not.

    TIME is ISO 8601 (read in the job's zone where it has no offset), or -2h, +30m: the last slot up to then.
    Without it: the last slot, or the first one to come.

    \b
      cronward why backup
      cronward why backup 2026-03-08T02:30
      cronward why backup -2h --json
    """
    answer = session.request("cron.why", WhyParams(id=job), WhyView)
    if time is not None:
        answer = _about(session, job, time, answer)
    if session.as_json:
        print_json(answer)
    else:
        click.echo(why_text(answer))
    return 0


def _about(session: Session, job: str, time: str, first: WhyView) -> WhyView:
    """The answer about `time`. What is so long ago or to come stands for the last slot up to then, if there is one."""
    match = _RELATIVE.fullmatch(time)
    ms = parse_duration_ms(match[2]) if match else None
    if match is None or ms is None:
        at_ms, within_ms = _meant(time, first)
        return session.request("cron.why", WhyParams(id=job, at_ms=at_ms, within_ms=within_ms), WhyView)
    at_ms = first.now_ms + (ms if match[1] == "+" else -ms)
    answer = session.request("cron.why", WhyParams(id=job, at_ms=at_ms), WhyView)
    earliest_ms = first.now_ms if match[1] == "+" else -DATE_MAX_MS
    before = [slot.at_ms for slot in answer.nearest if earliest_ms <= slot.at_ms <= at_ms]
    if answer.cause is not Cause.NOT_A_SLOT or not before:
        return answer
    return session.request("cron.why", WhyParams(id=job, at_ms=before[-1]), WhyView)


def _meant(time: str, first: WhyView) -> tuple[int, int]:
    """The instant, and how exactly it is meant, by how exactly it is written."""
    try:
        at_ms = around_in_zone_ms(time, first.tz if named_zone(first.tz) else "UTC")
    except InvalidRequest:
        raise click.UsageError(
            f"{time!r} is no TIME: use ISO 8601 such as 2026-03-08T02:30 (in the job's zone where it has no offset),"
            " epoch milliseconds, or -2h, +30m."
        ) from None
    text = time.strip()
    if _NO_SECONDS.fullmatch(text):
        return at_ms, 60_000
    return at_ms, 1 if text.isdigit() or _FRACTION.search(text) else 1_000


def why_text(answer: WhyView) -> str:
    """The cause in a sentence, then what belongs to it."""
    zone = named_zone(answer.tz)
    at_ms = answer.asked_ms if answer.slot_ms is None else answer.slot_ms
    run = answer.run
    facts: list[tuple[str, str | None]] = [
        ("job", safe(answer.job_name or answer.job_id)),
        ("slot" if answer.slot_ms is not None else "time", f"{stamp(at_ms, zone)}, {relative(at_ms, answer.now_ms)}"),
        ("answer", _sentence(answer, zone)),
        ("held up", _delay(answer, zone)),
        ("because", answer.detail and safe(answer.detail)),
        ("clocks", answer.note and safe(answer.note)),
        ("run", _run(run, zone) if run else None),
    ]
    for slot in answer.nearest:
        label = "slot before" if slot.at_ms < at_ms else "slot after"
        facts.append((label, stamp(slot.at_ms, zone) + (f"  ({safe(slot.note)})" if slot.note else "")))
    return facts_text(facts)


def _run(run: RunView, zone: tzinfo | None) -> str:
    of = f"for the slot {stamp(run.slot_ms, zone)}"
    if run.kind == "manual" and run.mode != "due":
        of = f"asked for by hand at {stamp(run.slot_ms, zone)} by {safe(run.requester or 'somebody unknown')}"
    return f"{run.key[:12]} {run_state(run)}, {of}"


def _sentence(answer: WhyView, zone: tzinfo | None) -> str:
    is_to_come = answer.slot_ms is not None and answer.slot_ms > answer.now_ms
    sentences = _SENTENCES | _OF_WHAT_IS_TO_COME if is_to_come else _SENTENCES
    return sentences[answer.cause].format(
        late=_late(answer),
        ended=_ended(answer),
        caught_up=_caught_up(answer),
        since="?" if answer.since_ms is None else stamp(answer.since_ms, zone),
        until="now" if answer.until_ms is None else stamp(answer.until_ms, zone),
        by=safe(answer.by or "somebody unknown"),
    )


_SENTENCES = {
    Cause.RAN: "it ran{late}{ended}",
    Cause.RUNNING: "it runs{late}",
    Cause.WAITING: "it waits",
    Cause.SKIPPED: "it was requested and not started",
    Cause.LAUNCH_LOST: "it did not start: its launch was lost in a crash",
    Cause.CONSUMED: "it was left out: an earlier run of the job was not over",
    Cause.BACKOFF: "it was left out: the job had failed and waits until {until}",
    Cause.DEFERRED: "it was missed, and is caught up at {until}",
    Cause.DROPPED: "it was missed: nobody looked (the machine slept, or its clock was set forward){caught_up}",
    Cause.DOWN: "it was missed: the scheduler was down from {since} to {until}{caught_up}",
    Cause.PAUSED: "it was missed: {by} paused the service from {since} to {until}{caught_up}",
    Cause.COVERED: "one run stands for it and for the slot before it, which was served late",
    Cause.DISABLED: "the job was disabled by {by} at {since}",
    Cause.AUTO_DISABLED: "Cronward disabled the job at {since} because it went on failing",
    Cause.USED_UP: "the job has had its only slot",
    Cause.EDITED: "not by the schedule of that time: {by} changed it at {since}",
    Cause.NOT_YET_CREATED: "the job did not exist yet: {by} added it at {until}",
    Cause.REMOVED: "the job was removed by {by} at {since}",
    Cause.SWALLOWED: "the zone's clocks left it out",
    Cause.FLAGGED: "the job is flagged and not run",
    Cause.COMING: "it is to come",
    Cause.FAR_AHEAD: "it will not run: the job waits for {until}, since the clock was ahead when that was planned; "
    "`cronward edit --reschedule` plans anew",
    Cause.NOT_A_SLOT: "not a slot",
    Cause.FORGOTTEN: "that is longer ago than is kept",
    Cause.UNKNOWN: "nothing that is kept says what became of it",
}


_OF_WHAT_IS_TO_COME = {
    Cause.BACKOFF: "it will be left out: the job has failed and waits until {until}",
    Cause.FLAGGED: "it will not run: the job is flagged",
}


def _late(answer: WhyView) -> str:
    return "" if answer.late_ms is None else f", {duration(answer.late_ms)} after its time"


def _ended(answer: WhyView) -> str:
    run = answer.run
    if run is None:
        return ""
    took = "" if run.duration_ms is None else f" after {duration(run.duration_ms)}"
    return f", and ended {safe(run_state(run))}{took}"


def _caught_up(answer: WhyView) -> str:
    return ", and left out" if answer.run is None else ", and is made up for by one run"


def _delay(answer: WhyView, zone: tzinfo | None) -> str | None:
    """What held its run up."""
    match answer.delayed_by:
        case Cause.DOWN | Cause.PAUSED:
            what = (
                "the scheduler was down" if answer.delayed_by is Cause.DOWN else f"paused by {safe(answer.by or '?')}"
            )
            until = "now" if answer.until_ms is None else stamp(answer.until_ms, zone)
            return f"{what} from {stamp(answer.since_ms or 0, zone)} to {until}"
        case Cause.DEFERRED:
            return "it was missed, and waited for its turn to be caught up"
        case Cause.WAITING:
            return "it waited for capacity or for the launcher"
        case _:
            return None
