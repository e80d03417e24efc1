"""What a command finds: descriptors, signals, session, directory, environment, input, user, secrets."""

import os
import shutil
import signal
from pathlib import Path

import msgspec
import pytest

from cronward.protocol.job import Secret
from cronward.protocol.outcome import Outcome, Reason, Status
from tests.support.executor_rig import NO_LIMITS, PATH, Executor, Rig, alive, now_ms, wait_for

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
no_switch = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")

USERS = [None, pytest.param("nobody", marks=root_only)]

AS_NOBODY = [
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
]


def lines(result: Outcome) -> list[str]:
    assert result.status is Status.OK, result
    return result.stdout.head.decode().splitlines()


def environment(result: Outcome) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines(result))


@pytest.mark.parametrize("user", USERS)
def test_descriptors_are_0_1_and_2_only(rig: Rig, executor: Executor, user: str | None) -> None:
    result = rig.run(executor, "ls", "-l", "/proc/self/fd", user=user)
    # The directory that ls itself opened comes after them.
    assert [line.split()[8] for line in lines(result)[1:]] == ["0", "1", "2", "3"]
    assert "/dev/null" in lines(result)[1]


@pytest.mark.parametrize("user", USERS)
def test_signals_are_default_and_unblocked_and_the_session_is_its_own(
    rig: Rig, executor: Executor, user: str | None
) -> None:
    status = dict(line.split(":\t", 1) for line in lines(rig.run(executor, "cat", "/proc/self/status", user=user)))
    # 32 and 33 are the C library's own; it sets them before each exec.
    ignored = int(status["SigIgn"], 16) & ~(0b11 << 31)
    assert (int(status["SigBlk"], 16), ignored) == (0, 0)
    fields = lines(rig.run(executor, "cat", "/proc/self/stat", user=user))[0].rpartition(") ")
    leader = fields[0].split()[0]
    _, _, group, session = fields[2].split()[:4]
    assert (group, session) == (leader, leader)


def test_an_ignored_signal_of_the_launcher_is_default_in_the_task(rig: Rig) -> None:
    executor = rig.start(wrapper=["sh", "-c", 'trap "" USR1 QUIT HUP; exec "$@"', "sh"])
    result = rig.shell(executor, "kill -USR1 $$; echo still here")
    assert (result.reason, result.signal) == (Reason.SIGNAL, signal.SIGUSR1)


def test_the_umask_is_the_launchers(rig: Rig) -> None:
    executor = rig.start(wrapper=["sh", "-c", 'umask 037; exec "$@"', "sh"])
    assert lines(rig.shell(executor, "umask")) == ["0037"]


def test_the_minimal_environment(rig: Rig) -> None:
    given = {
        "HOME": "/",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "LOGNAME": "someone",
        "SHELL": "/bin/sh",
        "TMPDIR": "/var/tmp",
        "TZ": "Asia/Tokyo",
        "USER": "someone",
    }
    executor = rig.start(env={**given, "SECRET_OF_THE_LAUNCHER": "x", "NOTIFY_SOCKET": "/nowhere"})
    run_id = rig.begin(executor, "env", env={"MINE": "ä=b", "TZ": "UTC"})
    result, _ = rig.finish(executor, run_id)
    expected = {**given, "TZ": "UTC", "MINE": "ä=b", "PATH": PATH, "CRONWARD_RUN_ID": run_id}
    assert environment(result) == expected


def test_inherit_passes_the_launchers_environment_but_nothing_of_ours(rig: Rig) -> None:
    stripped = {
        "NOTIFY_SOCKET": "/nowhere",
        "WATCHDOG_USEC": "1",
        "WATCHDOG_PID": "1",
        "LISTEN_FDS": "1",
        "JOURNAL_STREAM": "1:2",
        "INVOCATION_ID": "x",
        "CREDENTIALS_DIRECTORY": "/nowhere",
        "CRONWARD_STATE_DIR": "/nowhere",
        "CRONWARD_LOG_LEVEL": "info",
    }
    executor = rig.start(env={**stripped, "OTHER": "kept"})
    result = rig.shell(executor, "env | sort | grep -E '^(OTHER|" + "|".join(stripped) + ")='", env_policy="inherit")
    assert lines(result) == ["OTHER=kept"]


def test_account_variables_are_there_even_if_the_launcher_has_none(rig: Rig) -> None:
    executor = rig.start(wrapper=["env", "-u", "HOME", "-u", "LOGNAME", "-u", "USER"])
    got = environment(rig.run(executor, "env"))
    assert got["HOME"].startswith("/")
    assert got["LOGNAME"] == got["USER"] != ""


def test_input_is_on_stdin_whatever_its_size(rig: Rig, executor: Executor) -> None:
    text = "zeile ä\n" * 20_000
    result = rig.run(executor, "md5sum", input=text)
    import hashlib

    assert lines(result) == [hashlib.md5(text.encode()).hexdigest() + "  -"]


def test_without_input_stdin_is_empty(rig: Rig, executor: Executor) -> None:
    assert lines(rig.shell(executor, "cat; echo end")) == ["end"]


def test_programs_are_found_in_the_jobs_path(rig: Rig, executor: Executor, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "only-here"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert lines(rig.run(executor, "only-here", path=f"{program.parent}:{PATH}")) == ["found"]
    assert lines(rig.run(executor, "only-here", env={"PATH": f"/nowhere:{program.parent}"})) == ["found"]
    assert lines(rig.run(executor, "./only-here", cwd=str(program.parent))) == ["found"]


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A directory with files that are no programs."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o055)
    for name, text, mode in (
        ("plain", "echo x\n", 0o644),
        ("no-magic", "echo x\n", 0o755),
        ("bad-interpreter", "#!/nowhere/sh\n", 0o755),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    (tmp_path / "closed").mkdir(mode=0)
    return tmp_path


@pytest.mark.parametrize("user", USERS)
def test_what_cannot_be_started_is_told_apart(rig: Rig, executor: Executor, strange: Path, user: str | None) -> None:
    """B164, B166: four faults, four messages, and the PATH that was searched."""

    def attempt(*argv: str, cwd: str | None = None) -> tuple[Reason | None, int | None, str]:
        result = rig.run(executor, *argv, cwd=cwd, user=user)
        assert (result.status, result.started_ms) == (Status.ERROR, None)
        return result.reason, result.exit_code, result.message

    assert attempt("echo", cwd="/nope") == (
        Reason.CWD_MISSING, None, "working directory /nope: No such file or directory"
    )  # fmt: skip
    assert attempt("echo", cwd=f"{strange}/plain") == (
        Reason.CWD_NOT_DIRECTORY, None, f"working directory {strange}/plain: Not a directory"
    )  # fmt: skip
    assert attempt("nope", cwd="/") == (
        Reason.PROGRAM_MISSING, 127, f"program nope was not found in PATH={PATH}"
    )  # fmt: skip
    assert attempt("/nope")[:2] == (Reason.PROGRAM_MISSING, 127)
    assert attempt(f"{strange}/plain/x")[:2] == (Reason.PROGRAM_MISSING, 127)
    assert attempt(f"{strange}/plain")[:2] == (Reason.PROGRAM_NOT_EXECUTABLE, 126)
    assert attempt(f"{strange}/no-magic")[:2] == (Reason.PROGRAM_NOT_EXECUTABLE, 126)
    assert attempt("/usr")[:2] == (Reason.PROGRAM_NOT_EXECUTABLE, 126)
    reason, code, message = attempt(f"{strange}/bad-interpreter")
    assert (reason, code) == (Reason.PROGRAM_NOT_EXECUTABLE, 126)
    assert "interpreter" in message
    assert attempt("true", "x" * 200_000)[:2] == (Reason.ARGUMENTS_TOO_LONG, 126)


@root_only
def test_a_directory_of_mode_000_is_forbidden_to_its_user(rig: Rig, executor: Executor, strange: Path) -> None:
    result = rig.run(executor, "echo", cwd=f"{strange}/closed", user="nobody")
    assert (result.reason, result.message) == (
        Reason.CWD_FORBIDDEN,
        f"working directory {strange}/closed: Permission denied",
    )


def test_a_deleted_directory_fails_its_own_run_and_no_other(rig: Rig, tmp_path: Path) -> None:
    """B163: also when it is the service's own."""
    work = tmp_path / "work"
    service = tmp_path / "service"
    work.mkdir()
    service.mkdir()
    executor = rig.start(wrapper=["env", "-C", str(service)])
    service.rmdir()
    assert lines(rig.run(executor, "pwd", cwd=str(work))) == [str(work)]
    work.rmdir()
    assert rig.run(executor, "pwd", cwd=str(work)).reason is Reason.CWD_MISSING
    assert rig.run(executor, "pwd", cwd="/").status is Status.OK


def test_a_job_without_directory_runs_at_home(rig: Rig, executor: Executor, tmp_path: Path) -> None:
    assert lines(rig.run(executor, "pwd", env={"HOME": str(tmp_path)})) == [str(tmp_path)]
    assert lines(rig.run(executor, "pwd", env={"HOME": "/nowhere"})) == ["/"]


@root_only
def test_a_command_of_another_user(rig: Rig, executor: Executor) -> None:
    result = rig.shell(executor, "id -un; id -gn; id -G; env | sort; echo seen > /dev/stdout; pwd", user="daemon")
    name, group, groups, *rest = lines(result)
    assert (name, group, groups) == ("daemon", "daemon", "1")
    assert {"HOME=/usr/sbin", "LOGNAME=daemon", "USER=daemon", "SHELL=/usr/sbin/nologin"} <= set(rest)
    assert rest[-2:] == ["seen", "/usr/sbin"]


@root_only
def test_the_job_may_set_the_variables_of_the_account_itself(rig: Rig, executor: Executor) -> None:
    assert lines(rig.shell(executor, "echo $HOME $USER", user="nobody", env={"HOME": "/tmp"})) == ["/tmp nobody"]


@root_only
def test_a_user_that_does_not_exist(rig: Rig, executor: Executor) -> None:
    result = rig.run(executor, "true", user="no-such-user")
    assert (result.reason, result.message) == (
        Reason.USER_UNKNOWN,
        "user no-such-user does not exist on this machine",
    )


@no_switch
def test_only_root_can_switch_users(rig: Rig) -> None:
    rig.root.chmod(0o777)
    executor = rig.start(wrapper=AS_NOBODY)
    result = rig.run(executor, "true", user="daemon")
    assert result.reason is Reason.USER_FORBIDDEN
    assert "runs as root" in result.message


def switching(executor: Executor) -> int:
    """Pid of the leader while it switches its user."""

    def look() -> int | None:
        for pid in executor.descendants():
            if b"switch_user" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        return None

    return wait_for("a leader that switches its user", look)


@root_only
def test_a_switch_that_takes_too_long_times_out(rig: Rig, executor: Executor, tmp_path: Path) -> None:
    limits = msgspec.structs.replace(NO_LIMITS, setup_ms=400)
    run_id = rig.begin(executor, "true", user="nobody", limits=limits)
    os.kill(switching(executor), signal.SIGSTOP)
    result, free = rig.finish(executor, run_id)
    assert (result.reason, result.started_ms, free.fit) == (Reason.SETUP_TIMED_OUT, None, True)
    assert executor.descendants() == []


@root_only
@pytest.mark.parametrize("program", ["true", "nope"])
def test_a_leader_that_is_over_before_its_setup_was_noticed(rig: Rig, executor: Executor, program: str) -> None:
    run_id = rig.begin(executor, program, user="nobody")
    leader = switching(executor)
    os.kill(executor.pid, signal.SIGSTOP)
    rig.wait_for("the leader's end", lambda: not alive(leader))
    os.kill(executor.pid, signal.SIGCONT)
    begun = now_ms()
    result, free = rig.finish(executor, run_id)
    assert result.exit_code == (0 if program == "true" else 127)
    assert now_ms() - begun < 3000
    assert free.fit


@root_only
def test_a_switch_that_is_killed_is_a_failed_setup(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "true", user="nobody")
    os.kill(switching(executor), signal.SIGKILL)
    result, free = rig.finish(executor, run_id)
    assert (result.reason, result.started_ms, free.fit) == (Reason.SETUP_FAILED, None, True)


SECRET = "p@ss/w+rd=ä"


@pytest.fixture
def secret_file(strange: Path) -> Path:
    path = strange / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("user", USERS)
def test_secrets_come_from_files_variables_and_credentials(rig: Rig, secret_file: Path, user: str | None) -> None:
    executor = rig.start(env={"OF_LAUNCHER": SECRET, "CREDENTIALS_DIRECTORY": str(secret_file.parent)})
    sources = {"A": Secret(file=str(secret_file)), "B": Secret(env="OF_LAUNCHER"), "C": Secret(credential="secret")}
    import hashlib

    script = 'for v in "$A" "$B" "$C"; do printf %s "$v" | md5sum; done'
    expected = hashlib.md5(SECRET.encode()).hexdigest() + "  -"
    assert lines(rig.shell(executor, script, secrets=sources, user=user)) == [expected] * 3


@pytest.mark.parametrize("user", USERS)
def test_a_secret_is_masked_in_everything_that_is_kept(
    rig: Rig, executor: Executor, secret_file: Path, user: str | None
) -> None:
    """B172, B173: raw and base64, split over two writes; the URL-encoded form is in the unit tests."""
    script = (
        'echo "raw $TOKEN"; echo "$TOKEN" >&2; printf "p@ss/w"; sleep 0.2; echo "+rd=ä"; printf %s "$TOKEN" | base64'
    )
    run_id = rig.begin(executor, "sh", "-c", script, secrets={"TOKEN": Secret(file=str(secret_file))}, user=user)
    result, _ = rig.finish(executor, run_id)
    assert result.stdout.head == b"raw ***\n***\n***\n"
    assert rig.stdout(run_id) == result.stdout.head
    assert result.stderr.head == b"***\n"
    for file in rig.directory(run_id).iterdir():
        assert SECRET.encode() not in file.read_bytes()


@root_only
def test_a_secret_file_is_read_with_the_users_own_rights(rig: Rig, executor: Executor, secret_file: Path) -> None:
    secret_file.chmod(0o600)
    result = rig.run(executor, "true", secrets={"TOKEN": Secret(file=str(secret_file))}, user="nobody")
    assert (result.reason, result.message) == (
        Reason.SECRET_UNAVAILABLE,
        f"secret TOKEN: {secret_file}: Permission denied",
    )


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        (Secret(file="/nowhere"), "/nowhere: No such file or directory"),
        (Secret(file="/dev"), "/dev: not a regular file"),
        (Secret(file="/dev/zero"), "/dev/zero: not a regular file"),
        (Secret(env="NOT_THERE"), "the launcher's environment has no variable NOT_THERE"),
        (Secret(credential="x"), "credential x: the launcher was started without credentials"),
    ],
)
def test_a_missing_secret_names_variable_and_source(rig: Rig, executor: Executor, secret: Secret, problem: str) -> None:
    result = rig.run(executor, "true", secrets={"TOKEN": secret})
    assert (result.reason, result.message) == (Reason.SECRET_UNAVAILABLE, f"secret TOKEN: {problem}")
    assert result.started_ms is None


def test_a_fifo_as_secret_file_does_not_block(rig: Rig, executor: Executor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    result = rig.run(executor, "true", secrets={"TOKEN": Secret(file=str(tmp_path / "fifo"))})
    assert result.reason is Reason.SECRET_UNAVAILABLE
