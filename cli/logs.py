"""`logs`: what a run wrote, from its directory, or from the excerpt in its record where that is gone."""

import codecs
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import click

from cronward.cli.run import FINAL_STATES
from cronward.cli.runref import find_directory, find_run
from cronward.cli.session import Session, pause, print_json, with_requests
from cronward.cli.text import safe
from cronward.protocol import rundir
from cronward.protocol.client import Unanswered
from cronward.protocol.control import RunRef
from cronward.protocol.errors import CronwardError, Unreachable
from cronward.protocol.views import RunView, StreamView

_CHUNK_BYTES = 64 * 1024
_LOOK_MS = 100
_ASK_MS = 500


@click.command()
@click.argument("run")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--stdout", "only", flag_value=rundir.STDOUT, help="Only standard output.")
@click.option("--stderr", "only", flag_value=rundir.STDERR, help="Only standard error.")
@with_requests
def logs(session: Session, run: str, follow: bool, only: str | None) -> int:
    """Print what a run wrote: its standard output on standard output, its standard error on standard error.

    The run is named by its key (six digits are enough), its id, or its job, whose latest run it is. On a terminal
    control characters are shown as escapes; into a file or a pipe every byte goes as it is.

    \b
      cronward logs backup
      cronward logs backup -f
      cronward logs 4f1d2c --stderr > errors.txt
    """
    names = (only,) if only else (rundir.STDOUT, rundir.STDERR)
    view, directory = locate(session, run)
    if session.as_json:
        _print_as_json(view, directory, names)
    elif directory.is_dir() or (follow and view is not None and view.state not in FINAL_STATES):
        _copy(directory, names, _is_over(session, view, directory) if follow else lambda: True)
    elif view is not None and view.state in FINAL_STATES:
        _print_excerpts(view, names)
    else:
        click.echo("cronward: the run has not started yet; -f waits for it", err=True)
    return 0


def locate(session: Session, text: str) -> tuple[RunView | None, Path]:
    """The run's record, None if no scheduler answers, and where its directory is or was."""
    try:
        view = find_run(session, text)
    except (Unreachable, Unanswered):
        return None, find_directory(session.paths.runs, text)
    return view, session.paths.runs / view.key


def _is_over(session: Session, view: RunView | None, directory: Path) -> Callable[[], bool]:
    """A question that is cheap to repeat: asks the scheduler now and then, and without one looks for the outcome."""
    asked_ms = session.clock.mono_ms()
    final = view is not None and view.state in FINAL_STATES

    def over() -> bool:
        nonlocal asked_ms, final
        if final or (directory / rundir.OUTCOME).exists():
            return True
        if view is not None and session.clock.mono_ms() - asked_ms >= _ASK_MS:
            asked_ms = session.clock.mono_ms()
            try:
                final = session.request("run.get", RunRef(run_id=view.run_id), RunView).state in FINAL_STATES
            except CronwardError as error:
                click.echo(f"cronward: {safe(error.message)}; following the files", err=True)
        return final

    return over


class Tail:
    """What is new in a file that grows, or does not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def read(self) -> bytes:
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return b""
        return self._file.read(_CHUNK_BYTES)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Sink:
    """A descriptor that gets every byte as it is, or, if it is a terminal, harmless text."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace") if os.isatty(fd) else None

    def write(self, data: bytes) -> None:
        shown = data if self._decoder is None else safe(self._decoder.decode(data), keep="\n\t").encode()
        while shown:
            shown = shown[os.write(self._fd, shown) :]


def _sinks(names: tuple[str, ...]) -> list[tuple[str, Sink]]:
    return [(name, Sink((sys.stderr if name == rundir.STDERR else sys.stdout).fileno())) for name in names]


def _copy(directory: Path, names: tuple[str, ...], is_over: Callable[[], bool]) -> None:
    """Copies until there is nothing new *after* the run was seen to be over."""
    tails = [(Tail(directory / name), sink) for name, sink in _sinks(names)]
    try:
        over = False
        while True:
            copied = False
            for tail, sink in tails:
                if data := tail.read():
                    copied = True
                    sink.write(data)
            if not copied and over:
                return
            if not copied:
                over = is_over()
                pause(0 if over else _LOOK_MS)
    finally:
        for tail, _ in tails:
            tail.close()


def _print_excerpts(view: RunView, names: tuple[str, ...]) -> None:
    click.echo(f"cronward: the output of run {view.key[:12]} is no longer on disk; its excerpt:", err=True)
    for name, sink in _sinks(names):
        sink.write(excerpt(view.stderr if name == rundir.STDERR else view.stdout).encode())


def excerpt(stream: StreamView | None) -> str:
    """Head and tail, with what lies between them counted."""
    if stream is None:
        return ""
    left_out = stream.written - len(stream.head.encode()) - len(stream.tail.encode())
    between = f"\n… {left_out} bytes …\n" if stream.tail and left_out > 0 else ""
    return f"{stream.head}{between}{stream.tail}"


def _print_as_json(view: RunView | None, directory: Path, names: tuple[str, ...]) -> None:
    """Both streams as text, what is not UTF-8 replaced."""
    streams: dict[str, object] = {}
    for name in names:
        path = directory / name
        if path.exists():
            streams[name] = path.read_bytes().decode("utf-8", "replace")
        else:
            streams[name] = "" if view is None else excerpt(view.stderr if name == rundir.STDERR else view.stdout)
    run = {"key": directory.name} if view is None else {"key": view.key, "runId": view.run_id, "state": view.state}
    print_json(run | streams | {"complete": directory.is_dir()})
