"""Names of runs, instances and requests. Only the scheduler looks inside a run id; for all others it is opaque."""

import base64
import hashlib
import hmac
import secrets
import uuid
from typing import Annotated

import msgspec
from msgspec import Meta

SLOT_PREFIX = "cron-slot-v1."
MANUAL_PREFIX = "manual:"
NOTICE_PREFIX = "notice:"

RUN_ID_MAX = 512
RunId = Annotated[str, Meta(min_length=1, max_length=RUN_ID_MAX)]
"""Short enough for every packet that names the run."""


def slot_run_id(store_key: str, job_id: str, slot_ms: int) -> str:
    """Id of the run for one slot of one job: reversible, so that a slot can be asked for exactly once, ever."""
    payload = msgspec.json.encode([store_key, job_id, slot_ms])
    return SLOT_PREFIX + base64.urlsafe_b64encode(payload).rstrip(b"=").decode("ascii")


def parse_slot_run_id(run_id: str) -> tuple[str, str, int] | None:
    """(store key, job id, slot in ms) of a slot id, or None if `run_id` is of another kind or damaged."""
    if not run_id.startswith(SLOT_PREFIX):
        return None
    text = run_id[len(SLOT_PREFIX) :]
    try:
        payload = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(payload, type=tuple[str, str, int])
    except (ValueError, msgspec.DecodeError):
        return None


def manual_run_id(job_id: str, accepted_ms: int, instance: str, counter: int) -> str:
    """Id of a run that somebody asked for. The counter starts with each scheduler, so its instance is part of it."""
    return f"{MANUAL_PREFIX}{job_id}:{accepted_ms}:{instance[:8]}-{counter}"


def run_key(run_id: str) -> str:
    """Name of the run's directory: the first 32 hex digits of the id's SHA-256. People see its first 12."""
    return hashlib.sha256(run_id.encode()).hexdigest()[:32]


def new_instance() -> str:
    """A name for one life of a process."""
    return secrets.token_hex(8)


def new_job_id() -> str:
    return str(uuid.uuid4())


def new_request_id() -> str:
    return secrets.token_hex(12)


def run_secret(key: bytes, run_id: str) -> str:
    """What an executor shows to prove which run it was given. Stops mistakes, not a hostile job of the same user."""
    return hmac.new(key, run_id.encode(), hashlib.sha256).hexdigest()[:32]
