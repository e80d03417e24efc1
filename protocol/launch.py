"""Messages on the `launch` socket, between launcher (DEALER) and scheduler (ROUTER). msgpack, tagged arrays.

Evolution: new fields go to the end with a default; nothing is reordered, retyped or given another meaning; a new
message gets a new tag. Both sides accept the previous wire version.
"""

import enum
from typing import Annotated

import msgspec
from msgspec import Meta

from cronward.protocol import decoding
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.ids import RunId
from cronward.protocol.rundir import Limits
from cronward.protocol.version import WIRE


class RunState(enum.StrEnum):
    """What a launcher finds when it looks for a run by name."""

    HELD = "held"
    """Its lock is held: an executor has it."""
    SETTLING = "settling"
    """Nobody has it; what is left of it is being ended, an Exited follows."""
    WAITING = "waiting"
    """Received and not yet handed over."""
    OVER = "over"
    """Its outcome is in the directory, an Exited follows."""
    ABSENT = "absent"
    """No directory and not waiting."""


class GatewayState(enum.StrEnum):
    """What the launcher's probe last saw."""

    NONE = "none"
    """No gateway is configured; work that needs one cannot run."""
    UP = "up"
    STARTING = "starting"
    DRAINING = "draining"
    DOWN = "down"


class RefuseReason(enum.StrEnum):
    """Why a launch was refused."""

    STALE_EPOCH = "stale_epoch"
    CANCELLED = "cancelled"
    SPAWN_FAILED = "spawn_failed"
    GATEWAY_UNAVAILABLE = "gateway_unavailable"
    LEAVING = "leaving"


class Gone(enum.StrEnum):
    """How a run left its executor, in Exited."""

    REPORTED = "reported"
    """Its outcome was found in the directory."""
    INTERRUPTED = "interrupted"
    """Its lock was free and there is no usable outcome."""


class LauncherConfig(msgspec.Struct, frozen=True, array_like=True):
    """The part of the configuration that the launcher works by; pushed at Welcome and whenever it changes.

    `gateway_kind` is `none` or `http`; the probe asks `gateway_url` each `gateway_interval_ms`, with a total
    deadline of `gateway_timeout_ms`. `ready` executors are kept idle, at most `executors_max` exist.
    """

    version: int
    ready: int
    executors_max: int
    grace_ms: int
    gateway_kind: str = "none"
    gateway_url: str = ""
    gateway_interval_ms: int = 5000
    gateway_timeout_ms: int = 2000


class PoolState(msgspec.Struct, frozen=True, array_like=True):
    """The executor pool, in processes. `adopted` are of an earlier launcher; `waiting` counts launches."""

    ready: int = 0
    busy: int = 0
    starting: int = 0
    adopted: int = 0
    waiting: int = 0


# launcher → scheduler


class Register(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """First word of a launcher, repeated until Welcome comes. Carries no facts."""

    launcher: ProcessIdentity
    version: str
    wire: int = WIRE


class Inventory(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """For exactly the runs that Welcome named: what the launcher found. Repeated until Reconciled."""

    instance: str
    epoch: int
    runs: dict[str, RunState]


class Accepted(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The run was handed to an executor."""

    run: str
    executor_pid: int


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The run was not and will never be handed over. `detail` is for people."""

    run: str
    reason: RefuseReason
    detail: str = ""


class Exited(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A run is over although the scheduler may not have heard its executor. Repeated until Ack.

    `outcome` is what the executor saved, as encoded by `outcome.encode`. Without one the run was interrupted:
    `detail` says what is known (exit status of the executor, damaged outcome), `left` counts processes that could
    not be ended.
    """

    run: str
    how: Gone
    outcome: bytes | None
    detail: str = ""
    left: int = 0


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Each 2 s. `cannot_start` says why no run can be started at all at the moment, or is None.
    `epoch` is 0 before the first Welcome."""

    instance: str
    epoch: int
    gateway: GatewayState
    pool: PoolState
    cannot_start: str | None = None


class Leaving(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The launcher is about to exit; runs go on. It starts what it received until the answer (Left)."""

    instance: str
    epoch: int


class Forgotten(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """These runs have no directory any more."""

    runs: list[str]


# scheduler → launcher


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """Answer to Register: a new epoch, and every active run by name."""

    instance: str
    epoch: int
    config: LauncherConfig
    active: list[str]


class Reconciled(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """The inventory was applied; launches may follow."""

    instance: str
    epoch: int


class Launch(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """Start this run. `job` is the JSON of the definition, `secret` the run's own.
    `needs_gateway` asks for the check."""

    instance: str
    epoch: int
    run: RunId
    kind: str
    job: bytes
    limits: Limits
    secret: Annotated[str, Meta(max_length=200)]
    path: str
    needs_gateway: bool = False
    leave_children: bool = False


class Ack(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """The Exited of this run is recorded, or was not needed."""

    run: str


class Beat(msgspec.Struct, frozen=True, array_like=True, tag=24):
    """Answer to a Heartbeat of this epoch."""

    instance: str
    epoch: int


class RegisterAgain(msgspec.Struct, frozen=True, array_like=True, tag=25):
    """The scheduler does not know this launcher or its epoch: start with Register."""


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag=26):
    """End this run, or refuse it if it was not handed over. Repeated until the run is terminal."""

    run: str
    why: str


class Left(msgspec.Struct, frozen=True, array_like=True, tag=27):
    """Answer to Leaving: the epoch is closed, nothing more will come."""

    instance: str
    epoch: int


class Forget(msgspec.Struct, frozen=True, array_like=True, tag=28):
    """Delete the directories of these runs. Repeated until Forgotten."""

    runs: list[str]


class Configure(msgspec.Struct, frozen=True, array_like=True, tag=29):
    """A newer configuration; an older or equal version is dropped."""

    config: LauncherConfig


FromLauncher = Register | Inventory | Accepted | Refused | Exited | Heartbeat | Leaving | Forgotten
ToLauncher = Welcome | Reconciled | Launch | Ack | Beat | RegisterAgain | Cancel | Left | Forget | Configure

MESSAGE_MAX_BYTES = 4 * 1024 * 1024

_encoder = msgspec.msgpack.Encoder()
_from_launcher = msgspec.msgpack.Decoder[FromLauncher](FromLauncher)
_to_launcher = msgspec.msgpack.Decoder[ToLauncher](ToLauncher)


def encode(message: FromLauncher | ToLauncher) -> bytes:
    return _encoder.encode(message)


def decode_from_launcher(data: bytes) -> FromLauncher:
    """Raises msgspec.DecodeError (garbage, truncated, unknown message)."""
    return decoding.decode(_from_launcher, data)


def decode_to_launcher(data: bytes) -> ToLauncher:
    """Raises msgspec.DecodeError."""
    return decoding.decode(_to_launcher, data)
