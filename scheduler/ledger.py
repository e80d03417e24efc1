"""The ledger: requests (commit A), activation (commit B) and the one handler of terminal results (commit C)."""

import msgspec

from cronward.protocol import ids, log, outcome
from cronward.protocol.outcome import Outcome, Reason, Status
from cronward.scheduler import aftermath, notices, run_views
from cronward.scheduler.effects import Fact
from cronward.scheduler.rows import JobRow, RunRow, find_job, find_run
from cronward.scheduler.runstate import FINISH, TRANSITIONS, Event, State, Verdict
from cronward.scheduler.world import Turn


class Result(msgspec.Struct, frozen=True):
    """A terminal result, whatever its source. `outcome` is the executor's record where there is one."""

    event: Event
    reason: Reason | None
    message: str
    outcome: Outcome | None = None


class Request(msgspec.Struct, frozen=True):
    """A run to be requested. Scheduled ones have no mode and no requester."""

    run_id: str
    kind: str
    slot_ms: int
    mode: str | None = None
    requester: str | None = None


def request(turn: Turn, job: JobRow, wanted: Request) -> bool:
    """Commit A. False if this slot was requested before, or the job has a live run: the database decides."""
    created = turn.store.row("insert_run", **_columns(turn, job, wanted))
    if created is None:
        return False
    turn.effects.facts.add(Fact.REQUEST)
    _tell(turn, wanted.run_id)
    return True


def request_skipped(turn: Turn, job: JobRow, wanted: Request, reason: Reason, message: str) -> None:
    """A slot that cannot become a run, kept as a skipped one."""
    columns = _columns(turn, job, wanted)
    if turn.store.row("insert_skipped_run", reason=reason, message=message, **columns) is not None:
        current = find_job(turn.store, job.job_id) or job
        ended = aftermath.Finished(
            run_id=wanted.run_id,
            kind=wanted.mode or wanted.kind,
            asked_ms=turn.now_ms,
            status=Status.SKIPPED,
            reason=reason,
            message=message,
            started_ms=turn.now_ms,
            ended_ms=turn.now_ms,
            duration_ms=0,
        )
        aftermath.apply(turn, current, ended)
        _tell(turn, wanted.run_id)


def _columns(turn: Turn, job: JobRow, wanted: Request) -> dict[str, int | str | None]:
    return {
        "run_id": wanted.run_id,
        "run_key": ids.run_key(wanted.run_id),
        "job_id": job.job_id,
        "job_position": job.position,
        "job_name": job.name,
        "kind": wanted.kind,
        "mode": wanted.mode,
        "requester": wanted.requester,
        "slot_ms": wanted.slot_ms,
        "requested_ms": turn.now_ms,
    }


def activate(turn: Turn, run_id: str) -> bool:
    """Commit B. False if the run is not queued any more."""
    world = turn.world
    row = turn.store.row(
        "activate_run",
        run_id=run_id,
        now_ms=turn.now_ms,
        instance=world.instance,
        epoch=world.link.epoch,
        boot_id=world.boot_id,
    )
    if row is None:
        return False
    turn.effects.facts.add(Fact.ACTIVE)
    _tell(turn, run_id)
    return True


def finish(turn: Turn, run_id: str, finished: Outcome) -> None:
    """Commit C for an outcome that an executor produced."""
    reason = finished.reason
    if reason is None and finished.status is not Status.OK:
        reason = Reason.UNCLASSIFIED  # what did not end well has a reason, whatever its executor says
    settle(turn, run_id, Result(FINISH[finished.status], reason, finished.message, finished))


def settle(turn: Turn, run_id: str, result: Result) -> None:
    """Commit C: records a terminal result once; a further one changes nothing and a contradiction is kept."""
    run = find_run(turn.store, run_id)
    if run is None:
        log.warning("run.unknown_result", "a result came for a run that is not in the ledger", run=run_id)
        return
    then = TRANSITIONS[State(run.state)][result.event]
    if isinstance(then, State):
        _record(turn, run, then, result)
    elif then is Verdict.DUPLICATE:
        _compare(turn, run, result)
    elif then is Verdict.IMPOSSIBLE:
        log.error(
            "run.impossible", "a result came that cannot be", run=run_id, state=run.state, result=str(result.event)
        )


def _record(turn: Turn, run: RunRow, state: State, result: Result) -> None:
    made = result.outcome
    ended_ms = made.ended_ms if made else turn.now_ms
    turn.store.run(
        "settle_run",
        run_id=run.run_id,
        from_state=run.state,
        state=state,
        reason=result.reason,
        message=result.message[: outcome.MESSAGE_MAX_CHARS] or None,
        started_ms=made.started_ms if made else None,
        ended_ms=ended_ms,
        outcome=outcome.encode(made) if made else None,
    )
    turn.effects.facts.add(Fact.OUTCOME)
    turn.world.link.vouch(run.run_id)
    turn.world.executors.pop(run.run_id, None)
    if result.reason in (Reason.INTERRUPTED, Reason.LAUNCH_LOST):
        notices.add_recovered(turn, run.run_id)
    if run.state == State.ACTIVE or result.reason is Reason.CANCELLED:
        _leave_on_job(turn, run, state, result, ended_ms)
    _tell(turn, run.run_id)


def _leave_on_job(turn: Turn, run: RunRow, state: State, result: Result, ended_ms: int) -> None:
    job = find_job(turn.store, run.job_id)
    if job is None or job.position != run.job_position:
        return
    made = result.outcome
    started_ms = made.started_ms if made and made.started_ms is not None else run.activated_ms or ended_ms
    ended = aftermath.Finished(
        run_id=run.run_id,
        kind=run.mode or run.kind,
        asked_ms=run.requested_ms,
        status=Status(state),
        reason=result.reason,
        message=result.message,
        started_ms=started_ms,
        ended_ms=ended_ms,
        duration_ms=made.duration_ms if made else max(0, ended_ms - started_ms),
    )
    aftermath.apply(turn, job, ended)


def _compare(turn: Turn, run: RunRow, result: Result) -> None:
    """A second terminal message: the same is the normal repetition, another one contradicts."""
    same = (
        result.outcome is None
        if run.outcome is None
        else result.outcome is None or outcome.encode(result.outcome) == run.outcome
    )
    if same or run.late_outcome is not None:
        return
    text = f"{result.event} {result.reason or ''} {result.message}".strip()
    turn.store.run("keep_late_outcome", run_id=run.run_id, late_outcome=text[: outcome.MESSAGE_MAX_CHARS])
    log.warning(
        "run.late_outcome", "a result contradicts the recorded one and is kept beside it", run=run.run_id, late=text
    )


def withdraw(turn: Turn, run_id: str, reason: Reason, message: str) -> None:
    """A queued request lost its ground; an active run is left alone."""
    settle(turn, run_id, Result(Event.WITHDRAW, reason, message))


def _tell(turn: Turn, run_id: str) -> None:
    run = find_run(turn.store, run_id)
    if run is not None:
        turn.effects.run_events.append(run_views.run_view(turn.world, run))
