"""`backup` and `restore`."""

import contextlib
import subprocess
from pathlib import Path

import click
import msgspec

from cronward.cli.processes import check_command, restore_command
from cronward.cli.session import Session, print_json, with_session
from cronward.cli.text import safe
from cronward.cli.times import duration
from cronward.cli.values import Duration
from cronward.protocol import exits
from cronward.protocol.control import BackupParams
from cronward.protocol.errors import Code, CronwardError, StartupError
from cronward.protocol.views import BackupAnswer


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--timeout", "timeout_ms", type=Duration(), default="10m", show_default=True, help="How long to wait.")
@with_session
def backup(session: Session, file: Path) -> int:
    """Write a copy of the database to FILE, which must not exist, and verify it. The service goes on meanwhile.

    The copy is complete in itself; `cronward restore` puts it back.

    \b
      cronward backup /var/backups/cronward-$(date +%F).db
    """
    path = file.absolute()
    payload = session.call("service.backup", BackupParams(path=str(path)), repeat=False)
    checked = subprocess.run(check_command(session.options, path), capture_output=True, check=False)
    if checked.returncode != 0:
        said = (checked.stderr or checked.stdout).decode("utf-8", "replace").strip()
        raise CronwardError(Code.BACKUP_FAILED, f"{path} was written but does not pass its check: {said}")
    session.show(payload, BackupAnswer, _backup_text)
    return exits.OK


def _backup_text(answer: BackupAnswer) -> str:
    size = f"{answer.bytes / 1024:,.0f} KiB"
    return f"{safe(answer.path)}: {size} in {duration(answer.duration_ms)}, checked"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@with_session
def restore(session: Session, file: Path) -> int:
    """Put the backup FILE in place of the database. The service must be stopped.

    What ran after the backup was made is not known to it: such runs are not repeated, and not listed.

    \b
      systemctl stop cronward-scheduler
      cronward restore /var/backups/cronward-2026-12-02.db
      systemctl start cronward-scheduler
    """
    done = subprocess.run(restore_command(session.options, file.absolute()), capture_output=True, check=False)
    lines = [_Line(message=text.decode("utf-8", "replace")) for text in done.stderr.splitlines()] or [_Line("")]
    with contextlib.suppress(msgspec.DecodeError):  # a traceback
        lines = [msgspec.json.decode(line, type=_Line) for line in done.stderr.splitlines()] or lines
    if done.returncode != exits.OK:
        problem = "; ".join(line.message for line in lines if line.level == "error")
        status = done.returncode if done.returncode > 0 else exits.ERROR
        raise StartupError(lines[-1].code, status, problem or f"restore ended with {done.returncode}")
    if session.as_json:
        print_json({"ok": True, "restored": str(file.absolute()), "kept": lines[-1].kept})
    else:
        click.echo(safe(lines[-1].message))
        if lines[-1].kept:
            click.echo(f"the one before is kept: {safe(lines[-1].kept)}")
    return exits.OK


class _Line(msgspec.Struct):
    """What the log of a restore says."""

    message: str
    level: str = "error"
    code: Code = Code.BACKUP_FAILED
    kept: str = ""
