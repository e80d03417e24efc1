"""Job definitions: shape, defaults, limits, and the revision that an edit can insist on.

The JSON spelling is OpenClaw's. Every object is closed: an unknown key is refused by name. What a schedule *means* is
not judged here but in `cronward.schedule`.
"""

import base64
import hashlib
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from cronward.protocol.conversion import convert, shown
from cronward.protocol.errors import Code, CronwardError, InvalidRequest
from cronward.protocol.spelling import spelled

DEFINITION_MAX_BYTES = 256 * 1024
NAME_MAX = 200
DATE_MAX_MS = 8_640_000_000_000_000
RESERVED_KEYS = ("heartbeat-task:", "heartbeat:", "skill-collection-review:")

Label = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
Words = Annotated[list[str], Meta(min_length=1, max_length=4096)]
SECONDS_MAX = 315_576_000
Seconds = Annotated[float, Meta(ge=0, le=SECONDS_MAX)]
Delay = Annotated[float, Meta(gt=0, le=31_557_600)]
Delays = Annotated[tuple[Delay, ...], Meta(min_length=1, max_length=32)]
Preset = Annotated[str, Meta(pattern="^(openclaw|goclaw)$")]
Transient = Annotated[str, Meta(pattern="^(rate_limit|overloaded|network|timeout|server_error)$")]
CatchUpPolicy = Annotated[str, Meta(pattern="^(latest|none|all)$")]


class At(msgspec.Struct, frozen=True, tag="at", tag_field="kind", forbid_unknown_fields=True, rename="camel"):
    """Once, at an instant: ISO 8601 (UTC where it has no offset) or epoch ms as digits."""

    at: str


class Every(
    msgspec.Struct,
    frozen=True,
    tag="every",
    tag_field="kind",
    forbid_unknown_fields=True,
    rename="camel",
    omit_defaults=True,
):
    """On the grid anchor + k × interval. Without an anchor, the time of creation is it."""

    every_ms: Annotated[int, Meta(ge=1, le=DATE_MAX_MS)]
    anchor_ms: Annotated[int, Meta(ge=0, le=DATE_MAX_MS)] | None = None


class Cron(
    msgspec.Struct,
    frozen=True,
    tag="cron",
    tag_field="kind",
    forbid_unknown_fields=True,
    rename="camel",
    omit_defaults=True,
):
    """A cron expression in a zone. `tz` None means the configured default, written here at creation."""

    expr: Annotated[str, Meta(max_length=1000)]
    tz: str | None = None
    stagger_ms: Annotated[int, Meta(ge=0, le=86_400_000)] | None = None


Schedule = At | Every | Cron


class Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where an environment variable's secret value comes from: exactly one of a file (absolute path), a variable of
    the launcher's environment, or a systemd credential. Resolved in the executor; the value is stored nowhere."""

    file: str | None = None
    env: str | None = None
    credential: str | None = None


class Command(
    msgspec.Struct,
    frozen=True,
    tag="command",
    tag_field="kind",
    forbid_unknown_fields=True,
    rename="camel",
    omit_defaults=True,
):
    """Run a program. Missing timeouts are the configured ones; 0 means none."""

    argv: Words
    cwd: str | None = None
    env: dict[str, str] = {}
    secrets: dict[str, Secret] = {}
    env_policy: str = "minimal"
    input: str | None = None
    timeout_seconds: Seconds | None = None
    no_output_timeout_seconds: Seconds | None = None
    output_max_bytes: Annotated[int, Meta(ge=1, le=2**40)] | None = None
    output_limit_action: str = "truncate"
    user: str | None = None
    leave_children: bool = False


Payload = Command


class Delivery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Where the result goes. This release delivers nowhere: `none` is the only mode."""

    mode: str = "none"


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Who created the job, as the creator says."""

    agent_id: str | None = None
    session_key: str | None = None
    account_id: str | None = None


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """How failures of this job are handled; what is missing is the configuration's. `preset` names delays and jitter
    of quick retries, `transient` the classes of errors that get one, `backoffSeconds` the ladder after each further
    failure in a row. `disableAfter` 0 means never."""

    preset: Preset | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None
    delays_seconds: Delays | None = None
    jitter: Annotated[float, Meta(ge=0, le=1)] | None = None
    transient: tuple[Transient, ...] | None = None
    backoff_seconds: Delays | None = None
    disable_after: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None


class CatchUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """What happens to slots that came while the scheduler could not serve them; what is missing is the
    configuration's. `maxRuns` bounds the policy `all`; `maxAgeSeconds` 0 means any age."""

    policy: CatchUpPolicy | None = None
    max_runs: Annotated[int, Meta(ge=1, le=1000)] | None = None
    max_age_seconds: Seconds | None = None


class Pacing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds of the next check that a run may propose: durations such as `30s` or `1h30m`, or ms. Stored in ms."""

    min: int | str | None = None
    max: int | str | None = None


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """What a job is, without its id and without anything that changes by running."""

    name: Label
    schedule: Schedule
    payload: Payload
    enabled: bool = True
    delete_after_run: bool | None = None
    display_name: Label | None = None
    declaration_key: Label | None = None
    description: Annotated[str, Meta(max_length=4000)] | None = None
    owner: Owner | None = None
    agent_id: Label | None = None
    session_key: Label | None = None
    session_target: str = "isolated"
    wake_mode: str = "now"
    delivery: Delivery = Delivery()
    retry: Retry | None = None
    catch_up: CatchUp | None = None
    pacing: Pacing | None = None


_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSUPPORTED: dict[str, tuple[str, ...]] = {
    "payload": ("systemEvent", "agentTurn", "script", "heartbeat"),
    "schedule": ("on-exit", "stream"),
}


def parse_definition(raw: dict[str, object]) -> Definition:
    """A checked definition from JSON, with its name inferred where it has none. Raises InvalidRequest."""
    refuse_later_kinds(raw)
    fields = spelled(raw)
    if fields.get("name") is None:
        fields["name"] = _inferred_name(fields)
    definition = convert(fields, Definition)
    check(definition)
    return definition


def check(definition: Definition) -> None:
    """Rules that a type cannot say. Raises InvalidRequest."""
    key = definition.declaration_key
    if key is not None:
        if not key.strip():
            raise InvalidRequest("declarationKey", "must not be blank")
        for prefix in RESERVED_KEYS:
            if key.startswith(prefix):
                raise InvalidRequest("declarationKey", f"the prefix {prefix!r} belongs to the system (got {key!r})")
    for field, text in (("name", definition.name), ("displayName", definition.display_name)):
        if text is not None and (not text.strip() or not text.isprintable()):
            raise InvalidRequest(field, f"must be printable text and not blank (got {shown(text)})")
    _one_of("sessionTarget", definition.session_target, ("isolated",))
    _one_of("wakeMode", definition.wake_mode, ("now",))
    _one_of("delivery.mode", definition.delivery.mode, ("none",))
    if definition.delete_after_run and not isinstance(definition.schedule, At):
        raise InvalidRequest("deleteAfterRun", "is only possible with schedule.kind 'at'")
    _check_command(definition.payload)
    size = len(encode(definition))
    if size > DEFINITION_MAX_BYTES:
        raise InvalidRequest("", f"the job has {size} bytes as JSON, at most {DEFINITION_MAX_BYTES} are allowed")


def kind(schedule: Schedule) -> str:
    """`at`, `every` or `cron`."""
    return type(schedule).__name__.lower()


def deletes_itself(definition: Definition) -> bool:
    """One-shots do unless told otherwise."""
    if definition.delete_after_run is None:
        return isinstance(definition.schedule, At)
    return definition.delete_after_run


def encode(definition: Definition) -> bytes:
    """Canonical JSON: the same definition always gives the same bytes."""
    return msgspec.json.encode(definition, order="deterministic")


_definition_decoder = msgspec.json.Decoder(Definition)


def decode(data: bytes | str) -> Definition:
    """What `encode` gave. Raises msgspec.DecodeError or ValidationError for a row that is damaged or newer."""
    try:
        return _definition_decoder.decode(data)
    except RecursionError:
        raise msgspec.DecodeError("the definition nests too deeply") from None


def revision(data: bytes) -> str:
    """`sha256:` and base64url of the canonical JSON."""
    return "sha256:" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _check_command(payload: Command) -> None:
    _one_of("payload.envPolicy", payload.env_policy, ("minimal", "inherit"))
    _one_of("payload.outputLimitAction", payload.output_limit_action, ("truncate", "fail"))
    if not payload.argv[0]:
        raise InvalidRequest("payload.argv[0]", "the program must not be empty")
    texts = {f"payload.argv[{index}]": word for index, word in enumerate(payload.argv)}
    texts |= {f"payload.env.{name}": value for name, value in payload.env.items()}
    texts |= {"payload.cwd": payload.cwd or "", "payload.user": payload.user or ""}
    for field, text in texts.items():
        if "\0" in text:
            raise InvalidRequest(field, "must not contain a NUL character")
    if payload.cwd is not None and not payload.cwd.startswith("/"):
        raise InvalidRequest("payload.cwd", f"must be an absolute path (got {shown(payload.cwd)})")
    _check_environment(payload)


def _check_environment(payload: Command) -> None:
    for name in (*payload.env, *payload.secrets):
        if not _ENV_NAME.fullmatch(name):
            raise InvalidRequest("payload.env", f"{shown(name)} is no variable name: letters, digits and _ only")
        if name.startswith("CRONWARD_"):
            raise InvalidRequest("payload.env", f"{name}: names that begin with CRONWARD_ are Cronward's own")
    for name, secret in payload.secrets.items():
        field = f"payload.secrets.{name}"
        if name in payload.env:
            raise InvalidRequest(field, "is also in payload.env; a variable has one value")
        if sum(source is not None for source in (secret.file, secret.env, secret.credential)) != 1:
            raise InvalidRequest(field, "needs exactly one of file, env, credential")
        if secret.file is not None and not secret.file.startswith("/"):
            raise InvalidRequest(field, f"file must be an absolute path (got {shown(secret.file)})")


def _one_of(field: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidRequest(field, f"{shown(value)} is not one of {', '.join(allowed)}")


def refuse_later_kinds(raw: dict[str, object]) -> None:
    """Kinds that OpenClaw has and this release has not get an answer of their own."""
    for field, kinds in _UNSUPPORTED.items():
        part = raw.get(field)
        kind = part.get("kind") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in kinds:
            message = f"{field}.kind: {kind!r} is not supported by this release"
            raise CronwardError(Code.UNSUPPORTED, message, field=f"{field}.kind")


def _inferred_name(raw: dict[str, object]) -> str:
    payload = raw.get("payload")
    argv = payload.get("argv") if isinstance(payload, dict) else None
    if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
        words = argv[2:] if argv[:2] == ["sh", "-lc"] and len(argv) > 2 else argv
        for line in " ".join(words).splitlines():
            text = "".join(char if char.isprintable() else " " for char in line).strip()
            if text:
                return text if len(text) <= 60 else text[:59] + "…"
    return "Automation"
