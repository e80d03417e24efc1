"""Resolving a job's secrets. Values live in the environment of the task and in the masker of its run, nowhere else."""

import os
from collections.abc import Mapping
from pathlib import Path

from cronward.executor.steps import secret_from_file, secret_missing
from cronward.protocol.job import Secret


def resolve(secrets: Mapping[str, Secret], environ: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """Values by variable, from wherever each secret lies. Raises SetupFailed naming variable and source."""
    return {name: _resolve_one(name, secret, environ) for name, secret in secrets.items()}


def split(secrets: Mapping[str, Secret]) -> tuple[dict[str, Secret], dict[str, str]]:
    """(what the executor itself resolves, paths by variable that the job's user has to be able to read)."""
    own = {name: secret for name, secret in secrets.items() if secret.file is None}
    files = {name: secret.file for name, secret in secrets.items() if secret.file is not None}
    return own, files


def _resolve_one(variable: str, secret: Secret, environ: Mapping[bytes, bytes]) -> bytes:
    if secret.file is not None:
        return secret_from_file(variable, secret.file)
    if secret.env is not None:
        value = environ.get(secret.env.encode())
        if value is None:
            raise secret_missing(variable, f"the launcher's environment has no variable {secret.env}")
        return value
    return _credential(variable, secret.credential or "", environ)


def _credential(variable: str, name: str, environ: Mapping[bytes, bytes]) -> bytes:
    directory = environ.get(b"CREDENTIALS_DIRECTORY")
    if directory is None:
        raise secret_missing(variable, f"credential {name}: the launcher was started without credentials")
    if not name or "/" in name or name in (".", ".."):
        raise secret_missing(variable, f"credential {name!r}: not a name that systemd allows")
    return secret_from_file(variable, str(Path(os.fsdecode(directory)) / name))
