"""Cancelling runs: a queued one is withdrawn at once, an active one is asked to end until it is over."""

from cronward.protocol import launch, log, run
from cronward.protocol.errors import Code, CronwardError
from cronward.protocol.outcome import Reason
from cronward.protocol.views import CancelAnswer
from cronward.scheduler import ledger
from cronward.scheduler.rows import active_runs, find_run
from cronward.scheduler.runstate import Event, State
from cronward.scheduler.world import Turn

REPEAT_MS = 5_000
"""The launcher is told again this often until the run is over."""


def cancel(turn: Turn, run_id: str, by: str, why: str, *, abandon: bool = False) -> CancelAnswer:
    """run.cancel. The outcome that comes is what happened; `abandon` ends the record without waiting for it."""
    row = find_run(turn.store, run_id)
    if row is None:
        raise CronwardError(Code.RUN_NOT_FOUND, f"run not found: {run_id}", runId=run_id)
    match State(row.state):
        case State.QUEUED:
            ledger.withdraw(turn, run_id, Reason.CANCELLED, f"cancelled by {by}" + (f": {why}" if why else ""))
            return CancelAnswer(run_id, "cancelled")
        case State.ACTIVE:
            _order(turn, run_id, by, why)
            if not abandon:
                return CancelAnswer(run_id, "requested")
            message = f"abandoned by {by}; what became of its process is not known"
            ledger.settle(turn, run_id, ledger.Result(Event.ABANDON, Reason.ABANDONED, message))
            return CancelAnswer(run_id, "abandoned")
        case _:
            return CancelAnswer(run_id, "too_late")


def _order(turn: Turn, run_id: str, by: str, why: str) -> None:
    reason = f"cancelled by {by}" + (f": {why}" if why else "")
    turn.store.run("request_cancel", run_id=run_id, cancel_by=by, cancel_why=reason, now_ms=turn.now_ms)
    turn.effects.to_launcher.append(launch.Cancel(run_id, reason))
    peer = turn.world.executors.get(run_id)
    if peer is not None:
        turn.effects.to_executors.append((peer.address, run.HelloAnswer(run_id, turn.world.instance, reason)))
    log.info("run.cancel_requested", reason, run=run_id)


def cancel_all(turn: Turn, by: str, why: str) -> int:
    """Asks every active run to end; how many there are."""
    rows = active_runs(turn.store)
    for row in rows:
        _order(turn, row.run_id, by, why)
    return len(rows)


def repeat(turn: Turn) -> None:
    """Tells the launcher again what is to end."""
    for row in active_runs(turn.store):
        if row.cancel_why is not None:
            turn.effects.to_launcher.append(launch.Cancel(row.run_id, row.cancel_why))
