"""The leader of a task that runs as another user, until it becomes the command by exec.

Started by an executor of root as a bare interpreter (`-I -S`), so that a hanging directory or a slow user database
holds up this process and not the executor. Everything that the job names is opened after the switch, with the user's
own rights. It answers in lines of JSON, shaped as command.SwitchReply, on a descriptor that closes when exec succeeds.

Arguments: a directory for sys.path (for the caller's line of code), the descriptors of the request and of the reply.
"""

import json
import os
import pwd
import signal
import sys
from typing import NoReturn, TypedDict

from cronward.executor import steps
from cronward.executor.steps import SetupFailed

TRANSPORT = "latin-1"
"""How arbitrary bytes travel in JSON: one character a byte."""


class Request(TypedDict):
    """command.SwitchRequest as it arrives."""

    user: str
    argv: list[str]
    cwd: str | None
    env: dict[str, str]
    job_env: list[str]
    secret_files: dict[str, str]


def main() -> int:
    """Does not return if all goes well."""
    request_fd, reply_fd = int(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(reply_fd, False)
    with open(request_fd, "rb") as file:
        request: Request = json.load(file)
    try:
        _become_command(request, reply_fd)
    except SetupFailed as failed:
        _reply(reply_fd, {"reason": failed.reason, "message": failed.message, "exit_code": failed.exit_code})
    except OSError as error:
        _reply(reply_fd, {"reason": "setup_failed", "message": f"user {request['user']}: {error}"})
    return 1


def _become_command(request: Request, reply_fd: int) -> NoReturn:
    account = _account(request["user"])
    env = {name.encode(TRANSPORT): value.encode(TRANSPORT) for name, value in request["env"].items()}
    env.update(_account_variables(account, request["job_env"]))
    _switch(account)
    if request["cwd"] is None:
        steps.enter_home(env[b"HOME"])
    else:
        steps.enter(request["cwd"])
    values = {name: steps.secret_from_file(name, path) for name, path in request["secret_files"].items()}
    env.update((name.encode(), value) for name, value in values.items())
    _reply(reply_fd, {"secrets": [value.decode(TRANSPORT) for value in values.values()]})
    _exec([word.encode() for word in request["argv"]], env)


def _account(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(user)
    except (KeyError, ValueError):
        raise SetupFailed("user_unknown", f"user {user} does not exist on this machine") from None


def _account_variables(account: pwd.struct_passwd, job_env: list[str]) -> dict[bytes, bytes]:
    """HOME, LOGNAME, USER and SHELL of the account, unless the job sets them itself."""
    variables = {
        "HOME": account.pw_dir or "/",
        "LOGNAME": account.pw_name,
        "USER": account.pw_name,
        "SHELL": account.pw_shell or "/bin/sh",
    }
    return {name.encode(): os.fsencode(value) for name, value in variables.items() if name not in job_env}


def _switch(account: pwd.struct_passwd) -> None:
    # A pipe belongs to its maker: without this, `echo > /dev/stdout` would be refused to the user.
    for fd in (1, 2):
        os.fchown(fd, account.pw_uid, account.pw_gid)
    try:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    except PermissionError as error:
        raise SetupFailed("user_forbidden", f"user {account.pw_name}: {error.strerror}") from None


def _exec(argv: list[bytes], env: dict[bytes, bytes]) -> NoReturn:
    # The interpreter ignores these for itself, and exec would pass that on.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    refused: SetupFailed | None = None
    for file in steps.candidates(argv[0], env[b"PATH"]):
        try:
            os.execve(file, argv, env)  # noqa: S606 - no shell, on purpose
        except OSError as error:
            refused = refused or steps.exec_refused(file, error)
            if not steps.tries_next(error):
                raise steps.exec_refused(file, error) from None
    raise refused or steps.not_found(argv[0], env[b"PATH"])


def _reply(fd: int, fields: dict[str, str | int | list[str] | None]) -> None:
    line = json.dumps(fields).encode() + b"\n"
    while line:
        line = line[os.write(fd, line) :]
