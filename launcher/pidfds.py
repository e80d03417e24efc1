"""Descriptors of processes that cannot come to mean another one."""

import os

from cronward.protocol.identity import ProcessIdentity, is_alive


def open_pidfd(identity: ProcessIdentity | None) -> int | None:
    """A descriptor of exactly that process, or None if it is dead. Opened before it is compared: afterwards the number
    cannot mean anybody else."""
    if identity is None:
        return None
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    if is_alive(identity):
        return pidfd
    os.close(pidfd)
    return None
