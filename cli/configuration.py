"""`config check`: what is in force, and what put it there."""

import os
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from cronward.cli.session import Session, print_json, with_session
from cronward.cli.text import Cell, Column, safe, table, terminal_width
from cronward.protocol.config import Config, config_path, is_named, keys, keys_in_file, load, value, variable

_COLUMNS = [Column("KEY"), Column("VALUE", flexible=True), Column("FROM"), Column("VARIABLE")]


@click.group()
def config() -> None:
    """Check the configuration."""


@config.command()
@with_session
def check(session: Session) -> int:
    """Check the configuration file and the environment, and print every key with its value and where it comes from.

    Exits with 78 if something is wrong. `kill -HUP` (or `systemctl reload`) makes a running scheduler read it again.

    \b
      cronward config check
      cronward --config ./new.toml config check && mv new.toml /etc/cronward/cronward.toml
    """
    path = config_path(os.environ, session.options.config)
    loaded = load(path, os.environ, must_exist=is_named(os.environ, session.options.config))
    settings = settings_in_force(loaded, path, os.environ)
    if session.as_json:
        print_json({"file": str(path), "exists": path.exists(), "settings": settings})
        return 0
    rows = [[Cell(safe(setting[column])) for column in ("key", "value", "source", "variable")] for setting in settings]
    click.echo(table(_COLUMNS, rows, terminal_width()))
    click.echo(f"{safe(str(path))} {'is valid' if path.exists() else 'does not exist, which is fine'}", err=True)
    return 0


def settings_in_force(loaded: Config, path: Path, environ: Mapping[str, str]) -> list[dict[str, str]]:
    """Every key: value, `environment`, `file` or `default`, and the variable that would set it."""
    in_file = set(keys_in_file(path))
    settings = []
    for key in keys():
        name = variable(key)
        source = "environment" if name in environ else "file" if key in in_file else "default"
        settings.append({"key": key, "value": _shown(value(loaded, key)), "source": source, "variable": name})
    return settings


def _shown(found: object) -> str:
    """As one would write it in the file; a key that has no default is empty."""
    return found if isinstance(found, str) else "" if found is None else msgspec.json.encode(found).decode()
