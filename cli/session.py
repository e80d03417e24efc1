"""What a command works with: directories, clock, output form, and requests to the scheduler."""

import os
import select
import shlex
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import click
import msgspec

from cronward.cli.main import Options
from cronward.cli.values import Duration
from cronward.protocol.client import DEFAULT_TIMEOUT_MS, FIRST_CONTACT_MS, ControlClient, decode_result
from cronward.protocol.clock import Clock, SystemClock
from cronward.protocol.control import READ_METHODS, Params
from cronward.protocol.errors import Unreachable
from cronward.protocol.paths import Paths, resolve

T = TypeVar("T")
P = ParamSpec("P")

NO_PARAMS = Params()


class Session:
    """One command's view of an installation. A socket is opened with the first request to it."""

    def __init__(self, options: Options, *, as_json: bool = False, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> None:
        self.options = options
        self.as_json = as_json
        self.timeout_ms = timeout_ms
        self.clock: Clock = SystemClock()
        self.paths: Paths = resolve(os.environ, options.state, options.runtime)
        self._clients: dict[Path, ControlClient] = {}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def call(
        self,
        method: str,
        params: Params | dict[str, object] = NO_PARAMS,
        *,
        timeout_ms: int | None = None,
        repeat: bool = True,
    ) -> bytes:
        """The answer's JSON. Reads go to `query`, which the status group may use too, everything else to `control`."""
        path = self.paths.query if method in READ_METHODS else self.paths.control
        client = self._clients.get(path)
        if client is None:
            client = self._clients[path] = ControlClient(path, self.clock)
        try:
            return client.call(method, params, self.timeout_ms if timeout_ms is None else timeout_ms, repeat=repeat)
        except Unreachable:
            raise Unreachable(self._missing(path, self.timeout_ms if timeout_ms is None else timeout_ms)) from None

    def request(self, method: str, params: Params | dict[str, object], result: type[T]) -> T:
        """The answer as `result`."""
        return decode_result(self.call(method, params), result)

    def show(self, payload: bytes, kind: type[T], render: Callable[[T], str]) -> None:
        """Prints an answer: as it came with --json, else as `render` describes it."""
        if self.as_json:
            print_json(payload)
        else:
            click.echo(render(decode_result(payload, kind)))

    def _missing(self, path: Path, waited_ms: int) -> str:
        if path.exists() and not os.access(path, os.W_OK):
            return f"no access to {path}: run this as the user of the service"
        start = f"start one with `{self.start_command()}`"
        if waited_ms < FIRST_CONTACT_MS:
            return f"no scheduler has answered on {path} within {waited_ms} ms: allow a longer --timeout, or {start}"
        return f"no scheduler answers on {path}; {start}"

    def start_command(self) -> str:
        """The command line that starts the service for the same directories."""
        flags = ("--state", self.options.state), ("--runtime", self.options.runtime), ("--config", self.options.config)
        words = [word for flag, value in flags if value for word in (flag, value)]
        return shlex.join(["cronward", *words, "up"])


def print_json(value: object) -> None:
    """One JSON document, indented. Bytes are JSON already."""
    data = value if isinstance(value, bytes) else msgspec.json.encode(value)
    click.echo(msgspec.json.format(data, indent=2))


def pause(ms: float) -> None:
    """Lets time pass where nothing announces what is waited for. A signal's exception ends it early."""
    select.select([], [], [], ms / 1000)


_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON; errors too, on standard error.")
_timeout_option = click.option(
    "--timeout",
    "timeout_ms",
    type=Duration(),
    default=DEFAULT_TIMEOUT_MS,
    show_default="10s",
    help="How long to wait for the scheduler's answer.",
)


def with_session(function: Callable[Concatenate[Session, P], int]) -> Callable[P, int]:
    """Makes `function`, which returns an exit code, the body of a command: gives it a Session, and the flag --json."""

    @wraps(function)
    def body(*args: P.args, **kwargs: P.kwargs) -> int:
        options = click.get_current_context().find_object(Options) or Options(None, None, None)
        as_json = bool(kwargs.pop("as_json"))
        timeout_ms = int(str(kwargs.pop("timeout_ms", DEFAULT_TIMEOUT_MS)))
        session = Session(options, as_json=as_json, timeout_ms=timeout_ms)
        try:
            return function(session, *args, **kwargs)
        finally:
            session.close()

    return _json_option(body)


def with_requests(function: Callable[Concatenate[Session, P], int]) -> Callable[P, int]:
    """`with_session` for a command that mostly asks the scheduler: adds --timeout."""
    return _timeout_option(with_session(function))
