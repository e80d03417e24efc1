"""The environment of a command: a policy over the executor's own, then the job's variables."""

import os
import pwd
from collections.abc import Mapping

MINIMAL = frozenset({b"HOME", b"LANG", b"LC_ALL", b"LOGNAME", b"PATH", b"SHELL", b"TMPDIR", b"TZ", b"USER"})
"""What the policy `minimal` lets through."""

OWN_NAMES = frozenset(
    {
        b"NOTIFY_SOCKET",
        b"JOURNAL_STREAM",
        b"INVOCATION_ID",
        b"CREDENTIALS_DIRECTORY",
        b"SYSTEMD_EXEC_PID",
        b"MAINPID",
        b"MANAGERPID",
        b"FDSTORE",
        b"STATE_DIRECTORY",
        b"RUNTIME_DIRECTORY",
        b"CACHE_DIRECTORY",
        b"LOGS_DIRECTORY",
        b"CONFIGURATION_DIRECTORY",
    }
)
OWN_PREFIXES = (b"CRONWARD_", b"WATCHDOG_", b"LISTEN_", b"MEMORY_PRESSURE_", b"SUPERVISOR_")
"""What belongs to Cronward and its supervisor: never given to a command, not even with the policy `inherit`."""

RUN_ID = b"CRONWARD_RUN_ID"
"""Names the run in each of its processes; also how a launcher recognises what an executor left behind."""


class Environments:
    """The two policies applied to the executor's environment, once, since it never changes."""

    def __init__(self, environ: Mapping[bytes, bytes]) -> None:
        base = _with_account(environ)
        self._inherited = {name: value for name, value in base.items() if not _is_own(name)}
        self._minimal = {name: value for name, value in self._inherited.items() if name in MINIMAL}

    def build(self, run_id: str, policy: str, path: str, job_env: Mapping[str, str]) -> dict[bytes, bytes]:
        """A new dict for one command. `path` is the configured PATH: `minimal` always has it, `inherit` where the
        executor has none. The job's variables win over both."""
        if policy == "inherit":
            env = {b"PATH": path.encode(), **self._inherited}
        else:
            env = {**self._minimal, b"PATH": path.encode()}
        for name, value in job_env.items():
            env[name.encode()] = value.encode()
        env[RUN_ID] = run_id.encode()
        return env


def _is_own(name: bytes) -> bool:
    return name in OWN_NAMES or name.startswith(OWN_PREFIXES)


def _with_account(environ: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """`environ`, with HOME, LOGNAME and USER from the account where a supervisor did not set them, as cron does."""
    base = dict(environ)
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        return base
    base.setdefault(b"HOME", os.fsencode(account.pw_dir))
    base.setdefault(b"LOGNAME", os.fsencode(account.pw_name))
    base.setdefault(b"USER", os.fsencode(account.pw_name))
    return base
