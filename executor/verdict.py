"""What a run's end means: status, reason and a sentence, from why it was stopped or how its leader ended."""

import signal

import msgspec

from cronward.executor.process_tree import Exit
from cronward.executor.steps import SetupFailed
from cronward.protocol.outcome import MESSAGE_MAX_CHARS, Reason, Status


class Verdict(msgspec.Struct, frozen=True):
    """`message` is for people. `exit_code` is what a shell would have given for a task that did not start."""

    status: Status
    reason: Reason | None = None
    message: str = ""
    exit_code: int | None = None


def failure(reason: Reason, message: str, exit_code: int | None = None) -> Verdict:
    return Verdict(Status.ERROR, reason, shortened(message), exit_code)


def of_setup(failed: SetupFailed) -> Verdict:
    """The verdict on a task that could not be started."""
    return failure(Reason(failed.reason), failed.message, failed.exit_code)


def of_exit(exit: Exit) -> Verdict:
    """The verdict on a task that ended by itself."""
    if exit.signal is not None:
        return failure(Reason.SIGNAL, f"the command was ended by {signal_name(exit.signal)}")
    if exit.code:
        return failure(Reason.EXIT_CODE, f"the command exited with code {exit.code}")
    return Verdict(Status.OK)


def timed_out(limit_ms: int) -> Verdict:
    return failure(Reason.TIMED_OUT, f"the command was ended: it ran longer than {seconds(limit_ms)}")


def silent(limit_ms: int) -> Verdict:
    return failure(Reason.NO_OUTPUT, f"the command was ended: it wrote nothing for {seconds(limit_ms)}")


def output_limit(max_bytes: int) -> Verdict:
    return failure(Reason.OUTPUT_LIMIT, f"the command wrote more than {max_bytes} bytes to one stream")


def cancelled(why: str) -> Verdict:
    return failure(Reason.CANCELLED, f"cancelled: {why}" if why else "cancelled")


def terminated() -> Verdict:
    return failure(Reason.TERMINATED, "the executor was told to end (SIGTERM), and ended the command first")


def setup_timed_out(limit_ms: int) -> Verdict:
    return failure(Reason.SETUP_TIMED_OUT, f"the command could not be started within {seconds(limit_ms)}")


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def seconds(ms: int) -> str:
    return f"{ms / 1000:g} s"


def shortened(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX_CHARS else message[: MESSAGE_MAX_CHARS - 1] + "…"
