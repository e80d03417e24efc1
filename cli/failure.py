"""How a command's error is told: one line for people, one JSON object for programs, and an exit code."""

import os
import sys
import traceback

import click
import msgspec

from cronward.cli.text import safe
from cronward.protocol import exits
from cronward.protocol.client import Unanswered
from cronward.protocol.errors import Code, ConfigError, CronwardError, StartupError, Unreachable


def report(error: Exception, *, as_json: bool) -> int:
    """Writes `error` to standard error and returns the exit code."""
    if isinstance(error, BrokenPipeError):
        return _reader_left()
    if isinstance(error, click.Abort):
        return exits.INTERRUPTED
    if not as_json and isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    told = _told(error)
    if told is None:
        traceback.print_exception(error)
        told = CronwardError(Code.INTERNAL, f"internal error: {error!r}")
    _write(told, as_json=as_json)
    return exit_code(error)


def exit_code(error: Exception) -> int:
    """The code of protocol/exits.py that an error ends a command with."""
    match error:
        case StartupError():
            return error.exit_code
        case Unreachable() | Unanswered():
            return exits.UNREACHABLE
        case ConfigError():
            return exits.CONFIG
        case CronwardError():
            return exits.ERROR
        case click.ClickException():
            return error.exit_code
        case _:
            return exits.INTERNAL


def _told(error: Exception) -> CronwardError | None:
    if isinstance(error, click.ClickException):
        return CronwardError(Code.INVALID_REQUEST, error.format_message())
    return error if isinstance(error, CronwardError) else None


def _write(error: CronwardError, *, as_json: bool) -> None:
    if as_json:
        body = {"ok": False, "error": error.message, "code": error.code, "details": error.details}
        click.echo(msgspec.json.encode(body), err=True)
    else:
        click.echo(f"cronward: {safe(error.message)}", err=True)


def _reader_left() -> int:
    """`cronward list | head`: nobody reads any more, which is no error worth a line. Python's own flush at exit goes
    to nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.ERROR
