"""Jobs and runs in words: what `list`, `show`, `runs` and `watch` print. Pure functions of views and the time."""

import shlex
import signal
from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from cronward.cli.text import STATUS_COLOURS, Cell, Column, paint, safe, table
from cronward.cli.times import duration, relative, short_stamp, stamp
from cronward.protocol.ids import run_key
from cronward.protocol.job import At, CatchUp, Cron, Every, Pacing, Payload, Retry, Schedule
from cronward.protocol.views import JobView, RunView, SlotView
from cronward.schedule.duration import interval

JOB_COLUMNS = [
    Column("NAME", flexible=True),
    Column("SCHEDULE", flexible=True),
    Column("NEXT RUN"),
    Column("STATUS"),
    Column("LAST RUN"),
]
RUN_COLUMNS = [
    Column("RUN"),
    Column("JOB", flexible=True),
    Column("STATE", flexible=True),
    Column("SLOT"),
    Column("STARTED"),
    Column("TOOK", right=True),
    Column("EXIT", right=True),
]


def zone_of(job: JobView) -> tzinfo | None:
    """The zone in which the job's slots are read: its own, else this terminal's (None)."""
    name = job.schedule.tz if isinstance(job.schedule, Cron) and job.schedule.tz else job.tz
    return None if name is None else named_zone(name)


def named_zone(name: str) -> tzinfo | None:
    """None for one that this machine does not know."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def schedule_text(schedule: Schedule | None) -> str:
    """`0 13 * * * (Pacific/Auckland)`, `every 10m`, `at 2026-12-02T12:00:00Z`."""
    match schedule:
        case Cron(expr=expr, tz=tz):
            return safe(f"{expr} ({tz})" if tz else expr)
        case Every(every_ms=every_ms):
            return f"every {interval(every_ms)}"
        case At(at=at):
            return safe(f"at {at}")
        case None:
            return "?"


def job_table(jobs: list[JobView], now_ms: int, width: int | None) -> str:
    """One line a job. Ids are shown where a name alone would not tell which job it is."""
    names = [job.name for job in jobs]
    ambiguous = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    rows = []
    for job in jobs:
        label = f"{job.name} {job.id}" if job.name in ambiguous else job.name
        rows.append(
            [
                Cell(safe(label)),
                Cell(schedule_text(job.schedule)),
                Cell(next_run(job, now_ms)),
                Cell(job.status, STATUS_COLOURS.get(job.status, "")),
                Cell(_last_run(job, now_ms)),
            ]
        )
    return table(JOB_COLUMNS, rows, width)


def next_run(job: JobView, now_ms: int) -> str:
    """`13:00:00 CET, in 4 min`, in the job's zone; `–` where there is none."""
    at_ms = job.state.next_run_at_ms
    if at_ms is None or not job.enabled:
        return "–"
    return f"{short_stamp(at_ms, now_ms, zone_of(job))}, {relative(at_ms, now_ms)}"


def _last_run(job: JobView, now_ms: int) -> str:
    at_ms = job.state.last_run_at_ms
    if at_ms is None:
        return "–"
    return relative(at_ms, now_ms)


def job_text(job: JobView, now_ms: int) -> str:
    """Everything that a person asks of one job, with its next slots in its own zone."""
    facts: list[tuple[str, str | None]] = [
        ("job", safe(job.name)),
        ("id", job.id),
        ("title", job.display_name and safe(job.display_name)),
        ("about", job.description and safe(job.description)),
        ("declared as", job.declaration_key and safe(job.declaration_key)),
        ("status", paint(job.status, STATUS_COLOURS.get(job.status, ""))),
        ("flagged", job.flag and safe(job.flag)),
        ("schedule", schedule_text(job.schedule)),
        ("stagger", stagger_text(job.schedule)),
        ("zone", _zone_name(job)),
        ("switched off", _auto_disabled(job, now_ms)),
        *_payload_facts(job.payload),
        *_rule_facts(job),
        ("after its run", "removed if it went well" if job.delete_after_run else None),
        ("live run", job.state.live_run_id and run_key(job.state.live_run_id)[:12]),
        ("last run", _last_fact(job, now_ms)),
        ("last error", job.state.last_error and safe(job.state.last_error)),
        ("failures", f"{job.state.consecutive_errors} in a row" if job.state.consecutive_errors else None),
        ("slots used up", _consumed(job.state.consumed_slots)),
        ("schedule error", job.state.schedule_error and safe(job.state.schedule_error)),
        ("revision", job.config_revision),
    ]
    lines = facts_text(facts)
    slots = slots_text(job, now_ms)
    return f"{lines}\n{slots}" if slots else lines


def facts_text(facts: list[tuple[str, str | None]]) -> str:
    """Names and values in two columns; what is None is left out."""
    known = [(name, value) for name, value in facts if value is not None]
    width = max(len(name) for name, _ in known)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in known)


def slots_text(job: JobView, now_ms: int) -> str:
    """The coming slots that the scheduler gave, one a line, in the job's zone with offset."""
    return slot_lines(job.next_slots, zone_of(job), now_ms)


def slot_lines(slots: list[SlotView], zone: tzinfo | None, now_ms: int) -> str:
    """`next  Wed 2026-12-02 13:00:00 +01:00 CET  in 4 min`."""
    lines = []
    for index, slot in enumerate(slots):
        note = f"  ({safe(slot.note)})" if slot.note else ""
        lead = "next" if index == 0 else "then"
        lines.append(f"{lead}  {stamp(slot.at_ms, zone)}  {relative(slot.at_ms, now_ms)}{note}")
    return "\n".join(lines)


def _consumed(slots: int) -> str | None:
    return f"{slots} came while an earlier run was not over" if slots else None


def _zone_name(job: JobView) -> str | None:
    if not isinstance(job.schedule, Cron):
        return None
    return safe(job.schedule.tz or job.tz or "the scheduler's default")


def stagger_text(schedule: Schedule | None) -> str | None:
    """`up to 5m later, the same for each slot`; None for an exact schedule."""
    if isinstance(schedule, Cron) and schedule.stagger_ms:
        return f"up to {interval(schedule.stagger_ms)} later, the same for each slot"
    return None


def _auto_disabled(job: JobView, now_ms: int) -> str | None:
    off = job.state.auto_disabled
    return None if off is None else f"{off.reason}, {off.consecutive_errors} in a row, {relative(off.at_ms, now_ms)}"


def _last_fact(job: JobView, now_ms: int) -> str | None:
    state = job.state
    if state.last_run_at_ms is None:
        return None
    reason = f" ({state.last_reason})" if state.last_reason else ""
    took = f", took {duration(state.last_duration_ms)}" if state.last_duration_ms is not None else ""
    ago = relative(state.last_run_at_ms, now_ms)
    return f"{state.last_run_status or '?'}{reason} at {stamp(state.last_run_at_ms, zone_of(job))}, {ago}{took}"


def _payload_facts(payload: Payload | None) -> list[tuple[str, str | None]]:
    """The command; of secrets only the names and where they come from."""
    if payload is None:
        return []
    secrets = [
        f"{name} from {kind} {value}"
        for name, secret in payload.secrets.items()
        for kind, value in (("file", secret.file), ("variable", secret.env), ("credential", secret.credential))
        if value is not None
    ]
    timeout = payload.timeout_seconds
    return [
        ("command", " ".join(_quoted(word) for word in payload.argv)),
        ("directory", payload.cwd and safe(payload.cwd)),
        ("user", payload.user and safe(payload.user)),
        ("environment", safe(", ".join(f"{name}={value}" for name, value in payload.env.items())) or None),
        ("secrets", safe(", ".join(secrets)) or None),
        ("time limit", None if timeout is None else f"{timeout:g} s" if timeout else "none"),
    ]


def _rule_facts(job: JobView) -> list[tuple[str, str | None]]:
    """What the job itself says about failures, missed slots and pacing."""
    groups = (("retries", job.retry), ("catch-up", job.catch_up), ("pacing", job.pacing))
    return [(name, ", ".join(_settings(group)) or None) for name, group in groups if group is not None]


def _settings(group: Retry | CatchUp | Pacing) -> list[str]:
    given: dict[str, object] = msgspec.to_builtins(group)
    return [f"{key} {msgspec.json.encode(value).decode()}" for key, value in given.items()]


def _quoted(word: str) -> str:
    return safe(shlex.quote(word))


def run_state(run: RunView) -> str:
    """`ok`, `error/exit_code`, `active/unverified`: the state and, where it says more, why."""
    why = run.reason
    if run.state == "active":
        if run.stalled_since_ms is not None:
            why = "stalled"
        elif run.unverified_since_ms is not None:
            why = "unverified"
        elif run.cancel is not None:
            why = "cancelling"
    if run.state == "queued":
        why = run.waiting
    return safe(f"{run.state}/{why}" if why else run.state)


def run_exit(run: RunView) -> str:
    """`0`, `SIGKILL`, or nothing."""
    if run.signal is not None:
        return signal_name(run.signal)
    return "" if run.exit_code is None else str(run.exit_code)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_took(run: RunView, now_ms: int) -> str:
    if run.duration_ms is not None:
        return duration(run.duration_ms)
    if run.state == "active" and run.run_at_ms is not None:
        return f"{duration(max(0, now_ms - run.run_at_ms))}…"
    return ""


def run_table(runs: list[RunView], now_ms: int, width: int | None) -> str:
    """One line a run, as they came."""
    rows = [
        [
            Cell(run.key[:12]),
            Cell(safe(run.job_name)),
            Cell(run_state(run), STATUS_COLOURS.get(run.state, "")),
            Cell(short_stamp(run.slot_ms, now_ms, seconds=True)),
            Cell("" if run.run_at_ms is None else relative(run.run_at_ms, now_ms)),
            Cell(run_took(run, now_ms)),
            Cell(run_exit(run)),
        ]
        for run in runs
    ]
    return table(RUN_COLUMNS, rows, width)
