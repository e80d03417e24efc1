"""The steps before exec, shared by the executor and by the bare interpreter that switches users.

Standard library only: that interpreter starts without site-packages, and after the switch nothing may be imported,
since the user need not be able to read this installation. Reasons are the values of `outcome.Reason`.
"""

import errno
import os
import stat

SECRET_FILE_MAX_BYTES = 64 * 1024

NOT_FOUND = 127
NOT_EXECUTABLE = 126


class SetupFailed(Exception):
    """The task cannot be started; `reason` is a value of outcome.Reason, `exit_code` what a shell would have given."""

    def __init__(self, reason: str, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.exit_code = exit_code


_CWD_REASONS = {
    errno.ENOENT: "cwd_missing",
    errno.ENOTDIR: "cwd_not_directory",
    errno.EACCES: "cwd_forbidden",
    errno.EPERM: "cwd_forbidden",
}


def enter(cwd: str) -> None:
    """Changes to the working directory that the job names. Raises SetupFailed."""
    try:
        os.chdir(cwd.encode())
    except OSError as error:
        reason = _CWD_REASONS.get(error.errno or 0, "setup_failed")
        raise SetupFailed(reason, f"working directory {cwd}: {error.strerror}") from None


def enter_home(home: bytes) -> None:
    """Changes to the directory of a job that names none: its HOME, or / where that cannot be entered."""
    try:
        os.chdir(home)
    except OSError:
        os.chdir("/")


def candidates(program: bytes, path: bytes) -> list[bytes]:
    """The files that exec is to be tried on, in order: every `program` in PATH, or itself if it has a slash."""
    if b"/" in program:
        return [program]
    found = []
    for directory in path.split(b":"):
        candidate = os.path.join(directory or b".", program)
        try:
            if stat.S_ISREG(os.stat(candidate).st_mode):
                found.append(candidate)
        except OSError:
            continue
    return found


def not_found(program: bytes, path: bytes) -> SetupFailed:
    """No candidate at all."""
    message = f"program {_text(program)} was not found in PATH={_text(path)}"
    return SetupFailed("program_missing", message, NOT_FOUND)


def tries_next(error: OSError) -> bool:
    """Whether the search in PATH goes on after this failure, as execvp(3) has it."""
    return error.errno in (errno.EACCES, errno.ENOENT, errno.ENOTDIR)


def exec_refused(candidate: bytes, error: OSError) -> SetupFailed:
    """What the failure of exec on `candidate` means."""
    name = f"program {_text(candidate)}"
    said = error.strerror or str(error)
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR if not os.path.lexists(candidate):
            return SetupFailed("program_missing", f"{name}: {said}", NOT_FOUND)
        case errno.ENOENT | errno.ENOTDIR:
            message = f"{name} exists, but the interpreter or loader that it asks for does not"
            return SetupFailed("program_not_executable", message, NOT_EXECUTABLE)
        case errno.ENOEXEC:
            message = f"{name}: {said} (neither a program for this machine nor a script that begins with #!)"
            return SetupFailed("program_not_executable", message, NOT_EXECUTABLE)
        case errno.EACCES | errno.EPERM | errno.ETXTBSY | errno.ELOOP:
            return SetupFailed("program_not_executable", f"{name}: {said}", NOT_EXECUTABLE)
        case errno.E2BIG:
            message = f"{name}: {said}: arguments and environment are larger than the kernel allows"
            return SetupFailed("arguments_too_long", message, NOT_EXECUTABLE)
        case _:
            return SetupFailed("spawn_failed", f"{name} could not be started: {said}")


def secret_from_file(variable: str, path: str) -> bytes:
    """The contents of a regular file, without one newline at the end. Raises SetupFailed, which never says a value."""
    try:
        # O_NONBLOCK: a FIFO must not hold the run up.
        fd = os.open(path.encode(), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise secret_missing(variable, f"{path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise secret_missing(variable, f"{path}: not a regular file")
        value = os.read(fd, SECRET_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise secret_missing(variable, f"{path}: {error.strerror}") from None
    finally:
        os.close(fd)
    if len(value) > SECRET_FILE_MAX_BYTES:
        raise secret_missing(variable, f"{path}: larger than {SECRET_FILE_MAX_BYTES} bytes")
    if b"\0" in value:
        raise secret_missing(variable, f"{path}: contains a NUL byte, which no variable can hold")
    return without_newline(value)


def secret_missing(variable: str, problem: str) -> SetupFailed:
    return SetupFailed("secret_unavailable", f"secret {variable}: {problem}")


def without_newline(value: bytes) -> bytes:
    return value.removesuffix(b"\n").removesuffix(b"\r")


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
