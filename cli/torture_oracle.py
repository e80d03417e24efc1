"""Judging a round: what the commands wrote, the slots that were due, and what the ledger says, against the table.

Pure. The ledger is never believed alone: the side log says what ran, and the due slots are computed here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec

from cronward.cli.torture_load import Marks, count_states
from cronward.cli.torture_windows import LAUNCHES_AT_RISK, Action, Cell, Fate, Kind, Victims
from cronward.protocol.outcome import Reason
from cronward.protocol.views import RunView

NEVER_BEGAN = frozenset({Reason.LAUNCH_LOST, Reason.SPAWN_FAILED, Reason.NOT_DUE})
SERVICE_FAILED = frozenset({Reason.LAUNCH_LOST, Reason.INTERRUPTED})
_NOTHING = Marks()


class Seen(msgspec.Struct):
    """Everything that is known after a round.

    `planned`: runs that had to come to be, with their jobs' names. `records`: those that the ledger got in this round,
    by id. `marks`: what was written by run. `rewritten`: runs judged in earlier rounds that wrote again. `executors`:
    the executor that each run was published for. `killed`: executors that died without finishing, `asked`: those that
    got SIGTERM. `at_point`: the run that the executor at the point held. `told`: runs that a notice named. `faulted`:
    interrupted or lost one-shots whose job counted that as its own failure or is still enabled. `ticks`: slots of the
    ticker that got a run, or met one that was live, with the instant of that decision (epoch ms), from the last one of
    the round before on. `bugs`: what the daemons' logs call a bug.
    """

    cell: Cell
    planned: Mapping[str, str]
    records: Mapping[str, RunView]
    marks: Mapping[str, Marks]
    rewritten: set[str]
    executors: Mapping[str, int]
    killed: set[int]
    asked: set[int]
    at_point: str | None
    told: set[str]
    faulted: set[str]
    ticker: str
    ticks: Mapping[int, int]
    bugs: list[str]
    anchor_ms: int
    tick_ms: int


class Verdict(msgspec.Struct):
    """Judgement of one round. `lost` and `repeated` count occurrences beyond the table; `observed` every result."""

    violations: list[str]
    lost: int
    repeated: int
    observed: dict[str, int]


def judge(seen: Seen) -> Verdict:
    """Every rule, each as sentences about what breaks it."""
    lost = [*_unaccounted(seen), *_ticks_missing(seen), *_too_many_lost(seen)]
    repeated = list(_repeated(seen))
    others = [
        *_unasked(seen),
        *_untruthful(seen),
        *_unexplained(seen),
        *_at_the_point(seen),
        *_untold(seen),
        *seen.bugs,
        *(f"{run}: its job was made to answer for it" for run in sorted(seen.faulted)),
    ]
    observed = count_states(seen.records.values())
    return Verdict([*lost, *repeated, *others], len(lost), len(repeated), dict(observed))


def _unaccounted(seen: Seen) -> Iterator[str]:
    """Every slot that was due, and every run that was promised, has a record that is final."""
    for run, name in seen.planned.items():
        record = seen.records.get(run)
        if record is None:
            yield f"{name}: no record of {run}"
        elif record.status is None:
            yield f"{name}: {run} is still {record.state}"


def _ticks_missing(seen: Seen) -> Iterator[str]:
    """After a slot the next one is the first after the decision on it: what was missed meanwhile is one slot."""
    slots = sorted(seen.ticks)
    for before_ms, after_ms in pairwise(slots):
        decided_ms = max(before_ms, seen.ticks[before_ms])
        next_ms = seen.anchor_ms + ((decided_ms - seen.anchor_ms) // seen.tick_ms + 1) * seen.tick_ms
        if after_ms > next_ms:
            yield f"tick: slots between {before_ms} and {after_ms} are missing; {next_ms} was due"


def _too_many_lost(seen: Seen) -> Iterator[str]:
    lost = [run for run, record in seen.records.items() if record.reason == Reason.LAUNCH_LOST]
    allowed = LAUNCHES_AT_RISK if seen.cell.killed & {Kind.SCHEDULER, Kind.LAUNCHER} else 0
    yield from (f"{run}: launch_lost, beyond the {allowed} that the table allows" for run in lost[allowed:])


def _repeated(seen: Seen) -> Iterator[str]:
    for run, marks in seen.marks.items():
        if run in seen.records and (marks.starts > 1 or marks.ends > 1):
            yield f"{run}: began {marks.starts} times, ended {marks.ends} times"
    yield from (f"{run}: wrote again after it was over" for run in sorted(seen.rewritten))
    slots = Counter((record.job_id, record.slot_ms) for record in seen.records.values() if record.kind == "scheduled")
    yield from (f"slot {slot} of {job}: {count} records" for (job, slot), count in slots.items() if count > 1)


def _unasked(seen: Seen) -> Iterator[str]:
    for run, record in seen.records.items():
        on_grid = record.job_id == seen.ticker and (record.slot_ms - seen.anchor_ms) % seen.tick_ms == 0
        if run not in seen.planned and not on_grid:
            yield f"{run}: nobody asked for this run"


def _untruthful(seen: Seen) -> Iterator[str]:
    """The record agrees with what the command wrote."""
    for run, record in seen.records.items():
        marks = seen.marks.get(run, _NOTHING)
        if record.state == "ok" and not (marks.starts and marks.ends):
            yield f"{run}: recorded ok, but its command did not come to its end"
        if record.reason in NEVER_BEGAN and marks.starts:
            yield f"{run}: recorded as {record.reason}, but its command ran"
        if record.late_outcome is not None:
            yield f"{run}: recorded as {record.reason or record.state}, contradicted later by {record.late_outcome}"


def _unexplained(seen: Seen) -> Iterator[str]:
    """Whatever did not end well did so because of what was done to it."""
    published_by_dead = 1 if Kind.LAUNCHER in seen.cell.killed else 0
    refused = 1 if (seen.cell.point, seen.cell.action) == ("launcher.after_publish", Action.ERROR) else 0
    for run, record in seen.records.items():
        executor = seen.executors.get(run)
        match record.reason:
            case None | Reason.LAUNCH_LOST:  # counted elsewhere
                continue
            case Reason.INTERRUPTED if executor in seen.killed:
                continue
            case Reason.INTERRUPTED if published_by_dead and not seen.marks.get(run, _NOTHING).starts:
                published_by_dead -= 1
            case Reason.TERMINATED if executor in seen.asked:
                continue
            case Reason.SIGNAL if seen.cell.action is Action.TERM and seen.cell.victims is Victims.EVERYTHING:
                continue
            case Reason.SPAWN_FAILED if refused:
                refused -= 1
            case _:
                yield f"{run}: {record.reason} ({record.error}), which nothing done to it explains"


def _at_the_point(seen: Seen) -> Iterator[str]:
    """The run at the point met the fate of the table's row."""
    if not seen.cell.owner_dies:
        return
    row = seen.cell.row
    if seen.at_point is not None:
        record = seen.records.get(seen.at_point)
        marks = seen.marks.get(seen.at_point, _NOTHING)
        result = "no record" if record is None else record.reason or record.state
        if result != row.fate:
            yield f"{seen.at_point}: {result}; at {seen.cell.point} it is {row.fate}"
        if row.began not in (None, bool(marks.starts)) or row.ended not in (None, bool(marks.ends)):
            yield f"{seen.at_point}: began {marks.starts}, ended {marks.ends}; not what {seen.cell.point} says"
    elif row.fate is not Fate.RUNS and not any(record.reason == row.fate for record in seen.records.values()):
        yield f"no run is {row.fate}, though {seen.cell.owner} died at {seen.cell.point}"


def _untold(seen: Seen) -> Iterator[str]:
    for run, record in seen.records.items():
        if record.reason in SERVICE_FAILED and run not in seen.told:
            yield f"{run}: {record.reason}, but no notice names it"
