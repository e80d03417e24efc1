"""Schedules as they are written on a command line: a positional text, or one of --at, --every, --cron."""

import re

import click

from cronward.cli.jobflags import JobFlags
from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import Cron, Schedule
from cronward.schedule.at import at_in_zone, iso_utc, parse_at
from cronward.schedule.duration import parse_duration_ms

Fields = dict[str, object]

CHOOSE_ONE = "Choose exactly one schedule: a positional one ('every 10m', '*/5 * * * *'), --at, --every or --cron."


def from_text(text: str, tz: str | None, now_ms: int) -> Fields:
    """A positional schedule: `every DURATION`, a cron expression (5 to 7 fields, or @name), else a time."""
    repeating = repeating_fields(text, tz)
    if repeating is not None:
        return repeating
    try:
        return at_fields(text, tz, now_ms, "schedule")
    except click.UsageError:
        if _MEANT_AS_TIME.match(text):
            raise
        raise click.UsageError(
            f"{text!r} is no schedule: use 'every 10m', a cron expression such as '*/5 * * * *',"
            " an ISO time such as 2030-01-31T09:00:00Z, or a duration from now such as 20m."
        ) from None


def repeating_fields(text: str, tz: str | None) -> Fields | None:
    """`every DURATION` or a cron expression; None for anything else."""
    words = text.split()
    if len(words) > 1 and words[0].lower() == "every":
        return every_fields("".join(words[1:]), tz)
    if text.startswith("@") or 5 <= len(words) <= 7 or (len(words) > 1 and "*" in text):
        return cron_fields(text, tz)
    return None


def from_flags(flags: JobFlags, now_ms: int) -> Fields | None:
    """The schedule that --at, --every or --cron gives, with --tz, --stagger and --exact; None without any of them."""
    if sum(flags[kind] is not None for kind in ("at", "every", "cron")) > 1:
        raise click.UsageError(CHOOSE_ONE)
    if flags["at"] is not None:
        return at_fields(flags["at"], flags["tz"], now_ms)
    if flags["every"] is not None:
        return every_fields(flags["every"], flags["tz"])
    if flags["cron"] is not None:
        return cron_fields(flags["cron"], flags["tz"])
    return None


def new_schedule(positional: str | None, flags: JobFlags, now_ms: int) -> Fields:
    """The schedule of a new job. `positional` is None if a flag gives the schedule."""
    schedule = from_flags(flags, now_ms) if positional is None else from_text(positional, flags["tz"], now_ms)
    if schedule is None:
        raise click.UsageError(CHOOSE_ONE)
    return schedule | staggered(flags, is_cron=schedule["kind"] == "cron")


def changed_schedule(current: Schedule | None, flags: JobFlags, now_ms: int) -> Fields:
    """The patch of an existing job's schedule; empty if no flag speaks of it. What is not given stays as it is."""
    schedule = from_flags(flags, now_ms)
    if schedule is None and flags["tz"] is not None:
        if not isinstance(current, Cron):
            raise click.UsageError("--tz is only valid with --cron or an --at without offset.")
        schedule = {"kind": "cron", "tz": flags["tz"]}
    is_cron = isinstance(current, Cron) if schedule is None else schedule["kind"] == "cron"
    stagger = staggered(flags, is_cron=is_cron)
    if schedule is None:
        return {"kind": "cron", **stagger} if stagger else {}
    return schedule | stagger


_MEANT_AS_TIME = re.compile(r"\s*[+-]?[0-9]{1,6}([-.]|[0-9T:Z]*\s*$)", re.ASCII)


def at_fields(text: str, tz: str | None, now_ms: int, source: str = "--at") -> Fields:
    """Once, at an ISO time (in `tz` if it has no offset) or after a duration. `source` is told where it is wrong."""
    text = text.strip()
    after_ms = None if text.isdigit() else parse_duration_ms(text.removeprefix("+"))
    if after_ms is not None:
        if tz is not None:
            raise click.UsageError("--tz is only valid with --cron or an --at without offset.")
        if after_ms == 0:
            raise click.UsageError(f"Invalid {source} {text!r}: it has to lie ahead; `cronward run JOB` runs it now.")
        return {"kind": "at", "at": iso_utc(now_ms + after_ms)}
    try:
        return {"kind": "at", "at": iso_utc(parse_at(text)) if tz is None else at_in_zone(text, tz)}
    except InvalidRequest as error:
        raise click.UsageError(f"Invalid {source}: {error.problem}. A duration such as 20m is possible too.") from None


def every_fields(text: str, tz: str | None) -> Fields:
    if tz is not None:
        raise click.UsageError("--tz is only valid with --cron or an --at without offset.")
    every_ms = parse_duration_ms(text)
    if not every_ms:
        raise click.UsageError(f"Invalid --every {text!r}. Use a duration like 30s, 10m, 1h or 1d.")
    return {"kind": "every", "everyMs": every_ms}


def cron_fields(expr: str, tz: str | None) -> Fields:
    """What the expression means is judged by the scheduler."""
    fields: Fields = {"kind": "cron", "expr": expr}
    return fields if tz is None else fields | {"tz": tz}


def staggered(flags: JobFlags, *, is_cron: bool) -> Fields:
    """What --stagger or --exact adds to a schedule."""
    if flags["stagger"] is None and not flags["exact"]:
        return {}
    if not is_cron:
        raise click.UsageError("--stagger and --exact are only valid for cron schedules.")
    if flags["stagger"] is None:
        return {"staggerMs": 0}
    if flags["exact"]:
        raise click.UsageError("Choose one of --stagger and --exact.")
    stagger_ms = parse_duration_ms(flags["stagger"])
    if stagger_ms is None:
        raise click.UsageError(f"Invalid --stagger {flags['stagger']!r}; use e.g. 30s, 1m, 5m.")
    return {"staggerMs": stagger_ms}
