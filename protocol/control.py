"""Requests and answers on the `control` and `query` sockets, and events. JSON, one object a message.

Request `{type:"req", id, method, params}`, answer `{type:"res", id, ok, payload}` or `{type:"res", id, ok:false,
error:{code, message, details}}`, event `{type:"event", event, instance, seq, payload}`. A request is answered after
the commit that it caused. `caller` is whom a host acts for; the peer's uid and pid are taken from the socket.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from cronward.protocol import decoding
from cronward.protocol.errors import ErrorBody
from cronward.protocol.job import DATE_MAX_MS

REQUEST_MAX_BYTES = 1024 * 1024
Limit = Annotated[int, Meta(ge=1, le=200)]
Offset = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(min_length=1, max_length=512)]


class Request(msgspec.Struct, frozen=True):
    """A request. `params` is decoded by its method."""

    id: str | int
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    type: str = "req"
    caller: str | None = None


class Response(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer. Exactly one of `payload` and `error` is there. `id` is null if the request could not be read."""

    id: str | int | None
    ok: bool
    type: str = "res"
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: ErrorBody | None = None


class Event(msgspec.Struct, frozen=True):
    """Something that is committed, or the second's heartbeat (event `tick`). `seq` grows by one within `instance`."""

    event: str
    instance: str
    seq: int
    payload: msgspec.Raw
    type: str = "event"


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Base of all parameters: closed objects. A method without parameters takes this."""


class JobRef(Params, frozen=True):
    """A job by `id` or `jobId`: an id, or a name that only one job has."""

    id: Name | None = None
    job_id: Name | None = None


class WhyParams(JobRef, frozen=True):
    """cron.why: what became of the slot at `at_ms`, or of the first slot or run within so long after it; without it,
    of the last slot, or of the first one to come."""

    at_ms: Annotated[int, Meta(ge=-DATE_MAX_MS, le=DATE_MAX_MS)] | None = None
    within_ms: Annotated[int, Meta(ge=1, le=86_400_000)] = 1


class AddParams(Params, frozen=True):
    """cron.add: the definition's fields beside this one are read by `job.parse_definition`."""

    request_id: Name | None = None


class UpdateParams(JobRef, frozen=True):
    """cron.update. `cancel` also ends the job's live run; `reschedule` computes the deadline anew from now."""

    patch: dict[str, object] = {}
    expected_config_revision: str | None = None
    cancel: bool = False
    reschedule: bool = False
    request_id: Name | None = None


class RemoveParams(JobRef, frozen=True):
    """cron.remove."""

    request_id: Name | None = None


class RunParams(JobRef, frozen=True):
    """cron.run: `mode` is force, due or if-enabled."""

    mode: str = "force"
    expected_process_instance_id: str | None = None
    request_id: Name | None = None


class ListParams(Params, frozen=True):
    """cron.list. Without `include_disabled` or `enabled` only enabled jobs are listed."""

    include_disabled: bool = False
    enabled: str | None = None
    limit: Limit = 50
    offset: Offset = 0
    query: str = ""
    schedule_kind: str = "all"
    last_run_status: str = "all"
    sort_by: str = "nextRunAtMs"
    sort_dir: str = "asc"


class RunsParams(JobRef, frozen=True):
    """cron.runs: finished runs, with `live` also queued and active ones."""

    scope: str | None = None
    run_id: Name | None = None
    limit: Limit = 50
    offset: Offset = 0
    status: str = "all"
    query: str = ""
    sort_dir: str = "desc"
    live: bool = False


class RunRef(Params, frozen=True):
    """run.get: a run by its id, its key, or the first six or more digits of its key."""

    run_id: Name


class CancelParams(RunRef, frozen=True):
    """run.cancel. `abandon` ends the record of an active run whatever its process does."""

    abandon: bool = False
    why: Annotated[str, Meta(max_length=500)] = ""


class DrainParams(Params, frozen=True):
    """service.drain: start nothing more; with `kill` ask what runs to end."""

    kill: bool = False


class BackupParams(Params, frozen=True):
    """service.backup: absolute path of a file that does not exist yet."""

    path: Name


READ_METHODS = (
    "cron.list",
    "cron.get",
    "cron.status",
    "cron.runs",
    "cron.why",
    "run.get",
    "service.status",
    "status.snapshot",
)
WRITE_METHODS = (
    "cron.add",
    "cron.update",
    "cron.remove",
    "cron.run",
    "run.cancel",
    "service.pause",
    "service.resume",
    "service.drain",
    "service.backup",
    "service.reload",
)

EVENTS = ("cron", "notice", "service", "tick")
"""cron: a job was added, updated or removed, or a run was queued, started or finished, as `action` says. notice: see
NoticeView. service: mode, launcher or configuration changed. tick: each second."""

_request_decoder = msgspec.json.Decoder(Request)


def decode_request(data: bytes) -> Request:
    """Raises msgspec.DecodeError."""
    return decoding.decode(_request_decoder, data)
