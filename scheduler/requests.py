"""Requests on control and query: decoding, permission, idempotency, dispatch, and the answer."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from cronward.protocol import control, log
from cronward.protocol.conversion import convert
from cronward.protocol.errors import Code, CronwardError, ErrorBody, InvalidRequest
from cronward.scheduler import (
    backup,
    coming,
    job_commands,
    job_views,
    listing,
    run_commands,
    service_commands,
    why_command,
)
from cronward.scheduler.caller import Caller, from_peer_address
from cronward.scheduler.effects import Address, Reply
from cronward.scheduler.rows import live_run, text
from cronward.scheduler.store import StorageBlocked, StorageFailed
from cronward.scheduler.world import Mode, Turn

P = TypeVar("P", bound=control.Params)
Raw = dict[str, object]
Method = Callable[[Turn, Caller, Raw], msgspec.Struct | None]


class Arrived(msgspec.Struct, frozen=True):
    """A message as it came in: from which socket and peer, and who that is (uid:gid:pid at its end)."""

    socket: str
    address: Address
    body: bytes
    peer_address: str | None


def _typed(kind: type[P], function: Callable[[Turn, Caller, P], msgspec.Struct | None]) -> Method:
    return lambda turn, caller, raw: function(turn, caller, convert(raw, kind))


def _add(turn: Turn, caller: Caller, raw: Raw) -> msgspec.Struct:
    convert({key: value for key, value in raw.items() if key == "requestId"}, control.AddParams)
    return job_commands.add(turn, caller, {key: value for key, value in raw.items() if key != "requestId"})


def _get(turn: Turn, caller: Caller, params: control.JobRef) -> msgspec.Struct:
    job = job_commands.resolve_ref(turn, params)
    return coming.with_slots(turn, job_views.job_view(job, live_run(turn.store, job.job_id)))


METHODS: dict[str, Method] = {
    "cron.list": _typed(control.ListParams, lambda turn, caller, params: listing.jobs(turn, params)),
    "cron.get": _typed(control.JobRef, _get),
    "cron.status": _typed(control.Params, lambda turn, caller, params: service_commands.cron_status(turn)),
    "cron.runs": _typed(control.RunsParams, lambda turn, caller, params: listing.runs(turn, params)),
    "cron.add": _add,
    "cron.update": _typed(control.UpdateParams, job_commands.update),
    "cron.remove": _typed(control.RemoveParams, job_commands.remove),
    "cron.run": _typed(control.RunParams, run_commands.run),
    "cron.why": _typed(control.WhyParams, lambda turn, caller, params: why_command.explain(turn, params)),
    "run.get": _typed(control.RunRef, lambda turn, caller, params: run_commands.get(turn, params)),
    "run.cancel": _typed(control.CancelParams, run_commands.cancel),
    "service.status": _typed(control.Params, lambda turn, caller, params: service_commands.status(turn)),
    "service.pause": _typed(control.Params, lambda turn, caller, params: service_commands.pause(turn, caller)),
    "service.resume": _typed(control.Params, lambda turn, caller, params: service_commands.resume(turn, caller)),
    "service.drain": _typed(control.DrainParams, service_commands.drain),
    "service.reload": _typed(control.Params, lambda turn, caller, params: service_commands.reload(turn)),
    "status.snapshot": _typed(control.Params, lambda turn, caller, params: service_commands.snapshot(turn)),
}
"""Every method but service.backup, which is answered when it is finished."""


def handle(turn: Turn, arrived: Arrived, backups: backup.Backups) -> None:
    """Applies one request and adds its answer to the effects. Raises only for a storage failure."""
    request_id: str | int | None = None
    try:
        request = control.decode_request(arrived.body)
        request_id = request.id
        _check_permission(arrived.socket, request.method)
        payload = _apply(turn, arrived, request, backups)
    except (msgspec.DecodeError, RecursionError) as error:
        problem = ErrorBody(str(Code.INVALID_REQUEST), f"the request cannot be read: {error}")
        _answer(turn, arrived, control.Response(id=request_id, ok=False, error=problem))
    except CronwardError as error:
        _answer(turn, arrived, control.Response(id=request_id, ok=False, error=error.body()))
    except (StorageBlocked, StorageFailed):
        raise
    except Exception as error:
        log.error("request.failed", "a request met a bug", exc_info=True, error=repr(error))
        problem = ErrorBody(str(Code.INTERNAL), f"internal error: {error!r}")
        _answer(turn, arrived, control.Response(id=request_id, ok=False, error=problem))
    else:
        if payload is not None:
            _answer(turn, arrived, control.Response(id=request_id, ok=True, payload=msgspec.Raw(payload)))


def refuse(turn: Turn, arrived: Arrived, code: Code, message: str) -> None:
    """Answers a request without looking at more than its id."""
    try:
        request_id: str | int | None = control.decode_request(arrived.body).id
    except (msgspec.DecodeError, RecursionError):
        request_id = None
    _answer(turn, arrived, control.Response(id=request_id, ok=False, error=ErrorBody(str(code), message)))


def _check_permission(socket: str, method: str) -> None:
    if method not in control.READ_METHODS and method not in control.WRITE_METHODS:
        raise CronwardError(Code.UNKNOWN_METHOD, f"there is no method {method!r}")
    if socket == "query" and method not in control.READ_METHODS:
        raise CronwardError(Code.FORBIDDEN, f"{method} changes something; ask on the control socket")


def _apply(turn: Turn, arrived: Arrived, request: control.Request, backups: backup.Backups) -> bytes | None:
    """The encoded result, or None if the answer comes later. What fails is undone alone."""
    caller = from_peer_address(arrived.peer_address, request.caller)
    try:
        raw = msgspec.json.decode(request.params or b"{}", type=dict[str, object])
    except msgspec.ValidationError:
        raise InvalidRequest("params", "must be an object") from None
    if turn.world.mode is Mode.STOPPING and request.method in control.WRITE_METHODS:
        raise CronwardError(Code.STOPPING, "the scheduler is stopping; ask the next one")
    if request.method == "service.backup":
        params = convert(raw, control.BackupParams)
        backups.begin(turn, params.path, lambda response: Reply(arrived.socket, arrived.address, response), request.id)
        return None
    token = raw.get("requestId") if request.method in control.WRITE_METHODS else None
    mark = turn.effects.mark()
    try:
        with turn.store.savepoint():
            earlier = _earlier_answer(turn, request.method, token)
            if earlier is not None:
                return earlier
            payload = msgspec.json.encode(METHODS[request.method](turn, caller, raw))
            _remember(turn, request.method, token, payload)
            return payload
    except BaseException:
        turn.effects.return_to(mark)
        raise


def _earlier_answer(turn: Turn, method: str, token: object) -> bytes | None:
    if not isinstance(token, str):
        return None
    row = turn.store.row("find_request", request_id=token)
    if row is None:
        return None
    if row[0] != method:
        raise InvalidRequest("requestId", f"was used for {text(row[0])} before (got {token!r})")
    return text(row[1]).encode()


def _remember(turn: Turn, method: str, token: object, payload: bytes) -> None:
    if isinstance(token, str):
        turn.store.run("insert_request", request_id=token, method=method, answer=payload.decode(), at_ms=turn.now_ms)


def _answer(turn: Turn, arrived: Arrived, response: control.Response) -> None:
    turn.effects.replies.append(Reply(arrived.socket, arrived.address, msgspec.json.encode(response)))
