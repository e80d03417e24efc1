"""Configuration: one TOML file, environment overrides, defaults that work with neither.

A value is found in the order environment, file, default. The variable of a key is CRONWARD_ and its path in capitals:
`capacity.runs` is CRONWARD_CAPACITY_RUNS, `default_tz` is CRONWARD_DEFAULT_TZ. Lists are separated by commas.
"""

import os
import tomllib
import zoneinfo
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from cronward.protocol.conversion import convert
from cronward.protocol.errors import ConfigError, InvalidRequest
from cronward.protocol.job import CatchUpPolicy, Delay, Delays, Preset, Transient

Positive = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0, le=315_576_000)]


class Capacity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many runs are active at once."""

    runs: Annotated[int, Meta(ge=1, le=512)] = 8


class CommandDefaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a command job gets where it says nothing. `remote` lets a host create command jobs for its own callers."""

    remote: bool = False
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    timeout_s: Seconds = 600
    no_output_timeout_s: Seconds = 0
    output_max_bytes: Positive = 16 * 1024 * 1024
    setup_timeout_s: Seconds = 60
    grace_s: Seconds = 5
    cleanup_timeout_s: Seconds = 20


class Executors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pool: how many are kept ready, how many may exist."""

    ready: Annotated[int, Meta(ge=1, le=512)] = 2
    max: Annotated[int, Meta(ge=1, le=1024)] = 64


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long finished runs, with their output, are kept."""

    days: Annotated[float, Meta(ge=0, le=3650)] = 7
    runs_per_job: Positive = 2000


class RetryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens after failures, for jobs that say nothing themselves. The preset gives delays, number and jitter
    of quick retries where the three keys below it are not set; `backoff_s` is the ladder after each further failure
    in a row. 0 in the two `disable_after` keys means never."""

    preset: Preset = "openclaw"
    delays_s: tuple[Delay, ...] = ()
    max_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None
    jitter: Annotated[float, Meta(ge=0, le=1)] | None = None
    transient: tuple[Transient, ...] = ("rate_limit", "overloaded", "network", "timeout", "server_error")
    backoff_s: Delays = (30, 60, 300, 900, 3600)
    refire_gap_s: Annotated[float, Meta(ge=0, le=60)] = 0
    disable_after: Natural = 10
    disable_after_schedule_errors: Natural = 3


class CatchUpConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to slots that nobody could serve in time (stopped, paused, suspended, clock set): `policy` and its
    bounds for jobs that say nothing themselves, and how quickly all jobs together are caught up. A slot that is at
    most `grace_s` late is not missed. `max_age_s` 0 means any age."""

    policy: CatchUpPolicy = "latest"
    max_runs: Annotated[int, Meta(ge=1, le=1000)] = 10
    max_age_s: Seconds = 0
    grace_s: Annotated[float, Meta(ge=0, le=3600)] = 2
    immediate: Annotated[int, Meta(ge=0, le=10_000)] = 5
    spacing_s: Annotated[float, Meta(ge=0, le=3600)] = 5
    agent_delay_s: Annotated[float, Meta(ge=0, le=86_400)] = 120


class GatewayConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent gateway whose liveness is probed. `none`: there is none."""

    kind: str = "none"
    url: str = "http://127.0.0.1:18789"
    interval_s: Annotated[float, Meta(ge=0.2, le=3600)] = 5
    timeout_s: Annotated[float, Meta(ge=0.05, le=60)] = 2


class StatusConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Group that may read the status sockets; missing groups are ignored with a warning."""

    group: str = "cronward"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that an operator can set. Immutable; a reload makes a new one."""

    store_key: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,32}$")] = "main"
    default_tz: str = "UTC"
    log_level: str = "info"
    capacity: Capacity = Capacity()
    command: CommandDefaults = CommandDefaults()
    executors: Executors = Executors()
    retention: Retention = Retention()
    gateway: GatewayConfig = GatewayConfig()
    status: StatusConfig = StatusConfig()
    retry: RetryConfig = RetryConfig()
    catch_up: CatchUpConfig = CatchUpConfig()


class Snapshot(msgspec.Struct, frozen=True):
    """A configuration with the number under which it is installed. Numbers only grow."""

    version: int
    config: Config


RESTART_ONLY = ("store_key", "status.group")
"""Keys that a running scheduler cannot change."""

_CHOICES = {"log_level": ("debug", "info", "warning", "error"), "gateway.kind": ("none", "http")}
_RESERVED = frozenset(
    {
        "CRONWARD_CONFIG",
        "CRONWARD_STATE_DIR",
        "CRONWARD_RUNTIME_DIR",
        "CRONWARD_FAILPOINTS",
        "CRONWARD_FAILPOINTS_ENABLE",
        "CRONWARD_FAILPOINTS_DIR",
        "CRONWARD_RUN_ID",
        "CRONWARD_JOB_ID",
    }
)


def config_path(environ: Mapping[str, str], flag: str | None = None) -> Path:
    """The file that is read: flag, CRONWARD_CONFIG, /etc/cronward/cronward.toml for root, else below XDG config."""
    named = flag or environ.get("CRONWARD_CONFIG")
    if named:
        return Path(named).absolute()
    if os.getuid() == 0:
        return Path("/etc/cronward/cronward.toml")
    base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or "/") / ".config"
    return Path(base) / "cronward" / "cronward.toml"


def is_named(environ: Mapping[str, str], flag: str | None = None) -> bool:
    """Whether somebody named the file: then it has to exist, and only the default one may be missing."""
    return bool(flag or environ.get("CRONWARD_CONFIG"))


def load(path: Path, environ: Mapping[str, str], *, must_exist: bool = False) -> Config:
    """The configuration from `path` (may be missing unless `must_exist`) and the environment. Raises ConfigError."""
    raw = _read(path, must_exist=must_exist)
    for key, text in _overrides(environ):
        _set(raw, key, _parse_override(key, text))
    try:
        config = convert(raw, Config)
    except InvalidRequest as error:
        key = error.field.partition("[")[0]
        raise ConfigError(f"{_source(key, path, environ)}: {error.message}") from None
    _check(config, path, environ)
    return config


def changed_restart_only(old: Config, new: Config) -> list[str]:
    """Keys of RESTART_ONLY in which the two differ."""
    return [key for key in RESTART_ONLY if value(old, key) != value(new, key)]


def keys() -> Iterator[str]:
    """Every key as a dotted path."""
    for field in msgspec.structs.fields(Config):
        if isinstance(field.default, msgspec.Struct):
            yield from (f"{field.name}.{inner.name}" for inner in msgspec.structs.fields(field.default))
        else:
            yield field.name


def variable(key: str) -> str:
    return "CRONWARD_" + key.replace(".", "_").upper()


def value(config: Config, key: str) -> object:
    """What `config` says for a dotted key."""
    found: object = config
    for name in key.split("."):
        found = getattr(found, name)
    return found


def keys_in_file(path: Path) -> Iterator[str]:
    """The dotted keys that the file sets; none if it does not exist. Raises ConfigError."""
    for name, content in _read(path, must_exist=False).items():
        if isinstance(content, dict):
            yield from (f"{name}.{inner}" for inner in content)
        else:
            yield name


def _read(path: Path, *, must_exist: bool) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if must_exist:
            raise ConfigError(f"{path}: no such file") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # also thousands of digits, or of levels
        raise ConfigError(f"{path}: not TOML: {error}") from None


def _overrides(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    by_variable = {variable(key): key for key in keys()}
    for name in sorted(environ):
        if name in by_variable:
            yield by_variable[name], environ[name]
        elif name.startswith("CRONWARD_") and name not in _RESERVED:
            raise ConfigError(f"environment: {name} is no setting of Cronward; `cronward config check` lists them")


def _parse_override(key: str, text: str) -> object:
    default = value(Config(), key)
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise ConfigError(f"environment: {variable(key)}={text!r} is not true or false")
        return text.lower() in ("true", "1")
    if isinstance(default, tuple):
        return [_number_or_text(part.strip()) for part in text.split(",") if part.strip()]
    parsed = text if isinstance(default, str) else _number_or_text(text)
    if isinstance(parsed, str) and not isinstance(default, str):
        raise ConfigError(f"environment: {variable(key)}={text!r} is not a number")
    return parsed


def _number_or_text(text: str) -> int | float | str:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _set(raw: dict[str, object], key: str, value: object) -> None:
    *sections, name = key.split(".")
    table = raw
    for section in sections:
        inner = table.setdefault(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{section}: must be a table")
        table = inner
    table[name] = value


def _source(field: str, path: Path, environ: Mapping[str, str]) -> str:
    return f"environment {variable(field)}" if variable(field) in environ else str(path)


def _check(config: Config, path: Path, environ: Mapping[str, str]) -> None:
    for key, allowed in _CHOICES.items():
        if value(config, key) not in allowed:
            source = _source(key, path, environ)
            raise ConfigError(f"{source}: {key}: {value(config, key)!r} is not one of {', '.join(allowed)}")
    if not _is_zone(config.default_tz):
        source = _source("default_tz", path, environ)
        problem = "is no known time zone; allowed: an IANA zone name such as Europe/Berlin, or UTC"
        raise ConfigError(f"{source}: default_tz: {config.default_tz!r} {problem}")
    if config.executors.ready > config.executors.max:
        raise ConfigError(
            f"{path}: executors.ready: {config.executors.ready} is more than executors.max ({config.executors.max})"
        )


def _is_zone(name: str) -> bool:
    """Whether this machine knows the zone, by its own name: not the host's ("localtime"), which may change."""
    try:
        return name[:1].isupper() and bool(zoneinfo.ZoneInfo(name).key)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
