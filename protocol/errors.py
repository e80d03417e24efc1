"""Errors that reach a person or a peer. Each has a stable code; scripts branch on it, never on the message.

CronwardError
 ├─ InvalidRequest      what a caller sent cannot be accepted: field, value and what is allowed
 ├─ ConfigError         a configuration file or environment variable
 ├─ StartupError        a process cannot start; carries its exit code
 └─ Unreachable         no scheduler answers
"""

import enum

import msgspec


class Code(enum.StrEnum):
    """Stable error codes of the control and query sockets and of the CLI's JSON."""

    INVALID_REQUEST = "INVALID_REQUEST"
    UNKNOWN_METHOD = "UNKNOWN_METHOD"
    FORBIDDEN = "FORBIDDEN"
    JOB_NOT_FOUND = "CRON_JOB_NOT_FOUND"
    JOB_CHANGED = "CRON_JOB_CHANGED"
    JOB_AMBIGUOUS = "CRON_JOB_AMBIGUOUS"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    RUN_AMBIGUOUS = "RUN_AMBIGUOUS"
    UNSUPPORTED = "UNSUPPORTED"
    STORAGE_FULL = "STORAGE_FULL"
    STORAGE_MOVED = "STORAGE_MOVED"
    STORAGE_FAILED = "STORAGE_FAILED"
    PEER_BACKLOG = "PEER_BACKLOG"
    STOPPING = "STOPPING"
    BACKUP_FAILED = "BACKUP_FAILED"
    INTERNAL = "INTERNAL"
    CONFIG_INVALID = "CONFIG_INVALID"
    SCHEDULER_UNREACHABLE = "SCHEDULER_UNREACHABLE"
    TIMEOUT = "TIMEOUT"
    DB_INIT_FAILED = "DB_INIT_FAILED"
    ALREADY_RUNNING = "ALREADY_RUNNING"
    STATE_DIR_UNUSABLE = "STATE_DIR_UNUSABLE"
    RUNTIME_DIR_UNUSABLE = "RUNTIME_DIR_UNUSABLE"


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as peers see it."""

    code: str
    message: str
    details: dict[str, str | int | bool | None] = {}


class CronwardError(Exception):
    """Base of all errors that are told to somebody. `details` holds what a program may want to read."""

    def __init__(self, code: Code, message: str, **details: str | int | bool | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def body(self) -> ErrorBody:
        return ErrorBody(str(self.code), self.message, self.details)


class InvalidRequest(CronwardError):
    """A request that cannot be accepted. `field` is a path such as `schedule.expr`."""

    def __init__(self, field: str, problem: str, **details: str | int | bool | None) -> None:
        super().__init__(Code.INVALID_REQUEST, f"{field}: {problem}" if field else problem, field=field, **details)
        self.field = field
        self.problem = problem


class ConfigError(CronwardError):
    """A configuration that cannot be used; the message names file or variable, key, value and what is allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.CONFIG_INVALID, message)


class StartupError(CronwardError):
    """A process cannot start. `exit_code` is one of `exits`."""

    def __init__(self, code: Code, exit_code: int, message: str, **details: str | int | bool | None) -> None:
        super().__init__(code, message, **details)
        self.exit_code = exit_code


class Unreachable(CronwardError):
    """Nobody answers on the socket."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.SCHEDULER_UNREACHABLE, message)
