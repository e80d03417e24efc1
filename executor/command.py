"""Starting a command: descriptors 0, 1 and 2, a session of its own, default signals, and nothing else of ours.

The program is started by posix_spawn, which neither copies this process nor runs code of ours in the child. Everything
that the executor holds is close-on-exec. A command for another user goes through `switch_user`.
"""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cronward.executor import secrets, steps
from cronward.executor.environment import RUN_ID, Environments
from cronward.executor.steps import SetupFailed
from cronward.executor.switch_user import TRANSPORT
from cronward.protocol.job import Command

_DEFAULTED = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})

# `cronward` is found below this directory, both in a checkout and in site-packages.
_ROOT = str(Path(__file__).absolute().parents[2])
_SWITCH_USER = (
    "import sys; sys.path.append(sys.argv[1]); from cronward.executor.switch_user import main; sys.exit(main())"
)


class Started(msgspec.Struct, frozen=True):
    """A started leader and our ends of its pipes. While `setup_fd` is open, the leader is still switching its user
    and its answer comes there. `secret_values` are those that the executor itself resolved."""

    pid: int
    stdout_fd: int
    stderr_fd: int
    secret_values: tuple[bytes, ...]
    setup_fd: int | None = None


class SwitchRequest(msgspec.Struct, frozen=True):
    """What `switch_user` is asked to do; it reads this as JSON. `env`, by variable, is bytes read as TRANSPORT;
    `job_env` are the variables that the job sets itself; `secret_files` are paths by variable."""

    user: str
    argv: list[str]
    cwd: str | None
    env: dict[str, str]
    job_env: list[str]
    secret_files: dict[str, str]


class SwitchReply(msgspec.Struct, frozen=True):
    """One line of its answer: either a failure (`reason` as in Outcome), or that exec is next, with the values of the
    secrets that it read (bytes read as TRANSPORT)."""

    reason: str | None = None
    message: str = ""
    exit_code: int | None = None
    secrets: list[str] = []


class Launchpad:
    """What every command of this executor starts from."""

    def __init__(self, environ: Mapping[bytes, bytes]) -> None:
        self._environ = dict(environ)
        self._environments = Environments(environ)
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def start(self, command: Command, run_id: str, path: str) -> Started:
        """Starts the command. Raises SetupFailed; then nothing was started and nothing is left open."""
        env = self._environments.build(run_id, command.env_policy, path, command.env)
        if command.user is None:
            values = secrets.resolve(command.secrets, self._environ)
            env.update((name.encode(), value) for name, value in values.items())
            return self._spawn_here(command, env, tuple(values.values()))
        if os.geteuid() != 0:
            raise SetupFailed(
                "user_forbidden", f"user {command.user}: only a launcher that runs as root can switch users"
            )
        own, files = secrets.split(command.secrets)
        values = secrets.resolve(own, self._environ)
        env.update((name.encode(), value) for name, value in values.items())
        return self._spawn_switching(command, env, files, tuple(values.values()))

    def _spawn_here(self, command: Command, env: dict[bytes, bytes], values: tuple[bytes, ...]) -> Started:
        argv = [word.encode() for word in command.argv]
        with _Pipes(self._null, command.input) as pipes:
            # The executor stands in the working directory for as long as the spawn takes: the child inherits it, and
            # the kernel's answer says whether the directory or the program was wrong.
            try:
                if command.cwd is None:
                    steps.enter_home(env.get(b"HOME", b"/"))
                else:
                    steps.enter(command.cwd)
                pid = _spawn_first(steps.candidates(argv[0], env[b"PATH"]), argv, env, pipes.actions())
            finally:
                os.chdir("/")
            return Started(pid, *pipes.keep(), values)

    def _spawn_switching(
        self, command: Command, env: dict[bytes, bytes], files: dict[str, str], values: tuple[bytes, ...]
    ) -> Started:
        request = SwitchRequest(
            user=command.user or "",
            argv=command.argv,
            cwd=command.cwd,
            env={name.decode(TRANSPORT): value.decode(TRANSPORT) for name, value in env.items()},
            job_env=[*command.env, *command.secrets],
            secret_files=files,
        )
        with _Pipes(self._null, command.input) as pipes:
            request_fd = pipes.memory(msgspec.json.encode(request))
            reply_read, reply_write = pipes.pipe()
            words = (sys.executable, "-I", "-S", "-B", "-c", _SWITCH_USER, _ROOT, str(request_fd), str(reply_write))
            argv = [os.fsencode(word) for word in words]
            # A descriptor that is put onto itself stays open through exec.
            actions = pipes.actions((request_fd, request_fd), (reply_write, reply_write))
            pid = _spawn_first([argv[0]], argv, {RUN_ID: env[RUN_ID]}, actions)
            return Started(pid, *pipes.keep(), values, pipes.kept(reply_read))


Action = tuple[int, int, int]


class _Pipes:
    """The descriptors for one spawn. Leaving the context closes all but those that were kept."""

    def __init__(self, null: int, text: str | None) -> None:
        self._opened: list[int] = []
        self._null = null
        self._input = text

    def __enter__(self) -> "_Pipes":
        try:
            self._stdin = self._null if self._input is None else self.memory(self._input.encode())
            self._out, self._out_write = self.pipe()
            self._err, self._err_write = self.pipe()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._opened:
            os.close(fd)

    def pipe(self) -> tuple[int, int]:
        """(non-blocking read end, write end). Raises SetupFailed."""
        try:
            read, write = os.pipe2(os.O_CLOEXEC)
        except OSError as error:
            raise SetupFailed("spawn_failed", f"no pipe for the task: {error.strerror}") from None
        self._opened += (read, write)
        os.set_blocking(read, False)
        return read, write

    def memory(self, data: bytes) -> int:
        """A descriptor that reads `data`: no writing end has to be fed while the task runs. Raises SetupFailed."""
        try:
            fd = os.memfd_create("cronward-input", os.MFD_CLOEXEC)
            self._opened.append(fd)
            os.pwrite(fd, data, 0)
        except OSError as error:
            raise SetupFailed("spawn_failed", f"no memory for the task's input: {error.strerror}") from None
        return fd

    def actions(self, *more: tuple[int, int]) -> list[Action]:
        pairs = ((self._stdin, 0), (self._out_write, 1), (self._err_write, 2), *more)
        return [(os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in pairs]

    def keep(self) -> tuple[int, int]:
        """The read ends of stdout and stderr, which now belong to the caller."""
        return self.kept(self._out), self.kept(self._err)

    def kept(self, fd: int) -> int:
        self._opened.remove(fd)
        return fd


def _spawn_first(files: list[bytes], argv: list[bytes], env: dict[bytes, bytes], actions: list[Action]) -> int:
    """Starts the first of `files` that the kernel accepts, and returns its pid. Raises SetupFailed."""
    refused: SetupFailed | None = None
    for file in files:
        try:
            return os.posix_spawn(
                file, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_DEFAULTED
            )
        except OSError as error:
            refused = refused or steps.exec_refused(file, error)
            if not steps.tries_next(error):
                raise steps.exec_refused(file, error) from None
    raise refused or steps.not_found(argv[0], env[b"PATH"])
