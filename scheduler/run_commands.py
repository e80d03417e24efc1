"""Runs on request: running a job by hand, reading and cancelling runs."""

from cronward.protocol import ids
from cronward.protocol.control import CancelParams, RunParams, RunRef
from cronward.protocol.errors import Code, CronwardError, InvalidRequest
from cronward.protocol.outcome import Reason
from cronward.protocol.views import CancelAnswer, RunAnswer, RunView
from cronward.scheduler import aftermath, cancellation, due, ledger, run_views
from cronward.scheduler.caller import Caller
from cronward.scheduler.job_commands import resolve_ref
from cronward.scheduler.rows import JobRow, find_run, live_run, text
from cronward.scheduler.world import Mode, Turn

MODES = ("force", "due", "if-enabled")
KEY_DIGITS_MIN = 6


def run(turn: Turn, caller: Caller, params: RunParams) -> RunAnswer:
    """cron.run. `force` and `if-enabled` leave the schedule alone, `due` consumes the slot like the timer."""
    if params.mode not in MODES:
        raise InvalidRequest("mode", f"{params.mode!r} is not one of {', '.join(MODES)}")
    instance = turn.world.instance
    if params.expected_process_instance_id not in (None, instance):
        raise InvalidRequest("expectedProcessInstanceId", f"the scheduler was restarted; it is {instance} now")
    job = resolve_ref(turn, params)
    refusal = _refusal(turn, job, params.mode)
    if refusal is not None:
        return RunAnswer(ok=True, process_instance_id=instance, ran=False, reason=refusal)
    turn.world.manual_runs += 1
    run_id = ids.manual_run_id(job.job_id, turn.now_ms, instance, turn.world.manual_runs)
    definition = aftermath.readable(job)
    if definition is None:
        wanted = ledger.Request(run_id, "manual", turn.now_ms, params.mode, str(caller))
        ledger.request_skipped(turn, job, wanted, Reason.INVALID_SPEC, "the stored definition cannot be read")
        return RunAnswer(ok=True, process_instance_id=instance, ran=False, reason="invalid-spec")
    slot_ms = turn.now_ms
    if params.mode == "due" and job.deadline is not None:
        slot_ms = job.deadline.slot
        due.advance(turn, job, definition)
    ledger.request(turn, job, ledger.Request(run_id, "manual", slot_ms, params.mode, str(caller)))
    return RunAnswer(ok=True, process_instance_id=instance, enqueued=True, run_id=run_id)


def _refusal(turn: Turn, job: JobRow, mode: str) -> str | None:
    if turn.world.mode in (Mode.STOPPING, Mode.DRAINING):
        return "stopped"
    if not job.enabled and mode != "force":
        return "disabled"
    if live_run(turn.store, job.job_id) is not None:
        return "already-running"
    if mode == "due" and (job.next_due_ms is None or job.next_due_ms > turn.now_ms):
        return "not-due"
    return None


def get(turn: Turn, params: RunRef) -> RunView:
    """run.get."""
    row = find_run(turn.store, resolve_run(turn, params.run_id))
    if row is None:
        raise CronwardError(Code.RUN_NOT_FOUND, f"run not found: {params.run_id}", runId=params.run_id)
    return run_views.run_view(turn.world, row)


def cancel(turn: Turn, caller: Caller, params: CancelParams) -> CancelAnswer:
    """run.cancel."""
    run_id = resolve_run(turn, params.run_id)
    return cancellation.cancel(turn, run_id, str(caller), params.why, abandon=params.abandon)


def resolve_run(turn: Turn, name: str) -> str:
    """A run id from an id, a key, or the first digits of a key that only one run has."""
    digits = name.lower()
    if not (KEY_DIGITS_MIN <= len(digits) <= 32 and all(char in "0123456789abcdef" for char in digits)):
        return name
    found = [text(row[0]) for row in turn.store.rows("runs_by_key", low=digits, high=digits + "g")]
    if len(found) > 1:
        raise CronwardError(Code.RUN_AMBIGUOUS, f"several runs begin with {name}; give more digits", runId=name)
    return found[0] if found else name
