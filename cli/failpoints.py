"""`failpoints` and `version`: what this release is and where it can be made to fail."""

import click

from cronward.cli.session import Session, print_json, with_session
from cronward.cli.text import Cell, Column, table, terminal_width
from cronward.protocol.failpoints import WINDOWS
from cronward.protocol.version import VERSION, WIRE

_COLUMNS = [Column("FAILPOINT"), Column("CRASH WINDOW", right=True)]


@click.command("failpoints")
@with_session
def list_failpoints(session: Session) -> int:
    """List the points where a process can be made to crash, stop, wait or fail, with their row in the table of crash
    windows (docs).

    \b
      cronward failpoints
      CRONWARD_FAILPOINTS_ENABLE=yes CRONWARD_FAILPOINTS='executor.after_task=crash@1' cronward up
    """
    if session.as_json:
        print_json([{"name": name, "window": int(window)} for name, window in WINDOWS.items()])
    else:
        rows = [[Cell(name), Cell(window)] for name, window in WINDOWS.items()]
        click.echo(table(_COLUMNS, rows, terminal_width()))
    return 0


@click.command("version")
@with_session
def show_version(session: Session) -> int:
    """Print the release.

    \b
      cronward version
    """
    if session.as_json:
        print_json({"version": VERSION, "wire": WIRE})
    else:
        click.echo(f"cronward {VERSION}")
    return 0
