"""What becomes of a task's output: file, digest, excerpt, cap."""

import hashlib
import sys
from pathlib import Path

import msgspec
import pytest

from cronward.protocol import pair
from cronward.protocol.outcome import Reason, Status
from tests.support.executor_rig import NO_LIMITS, Executor, Rig, now_ms

MIB = 1024 * 1024


def test_files_are_made_with_the_first_byte(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "sh", "-c", "echo x >&2")
    result, _ = rig.finish(executor, run_id)
    assert sorted(path.name for path in rig.directory(run_id).iterdir()) == ["intent", "lock", "outcome", "stderr"]
    assert result.stdout.written == 0
    assert (rig.directory(run_id) / "stderr").stat().st_mode & 0o777 == 0o600


def test_digest_and_excerpt_of_long_output(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "seq", "200000")
    result, _ = rig.finish(executor, run_id)
    expected = b"".join(b"%d\n" % number for number in range(1, 200_001))
    stream = result.stdout
    assert rig.stdout(run_id) == expected
    assert stream.sha256 == hashlib.sha256(expected).hexdigest()
    assert (stream.written, stream.kept, stream.truncated) == (len(expected), len(expected), False)
    assert (stream.head, stream.tail) == (expected[:2048], expected[-4096:])


def test_bytes_that_are_not_utf_8_are_kept_as_they_are(rig: Rig, executor: Executor) -> None:
    """B154: such a byte stops no reader."""
    run_id = rig.begin(executor, "sh", "-c", r"printf 'a\307\377\0\n'; seq 20000")
    result, _ = rig.finish(executor, run_id)
    assert result.status is Status.OK
    assert rig.stdout(run_id).startswith(b"a\xc7\xff\0\n1\n")
    assert rig.stdout(run_id).endswith(b"\n20000\n")


@pytest.mark.parametrize("offset", [2046, 2047, 4095, 8191, 65535])
@pytest.mark.parametrize("letter", ["é", "😀"])
def test_a_letter_at_an_edge_stays_whole(rig: Rig, executor: Executor, offset: int, letter: str) -> None:
    """B155: in the file and in the excerpt."""
    text = "x" * offset + letter + "y" * 4095 + letter
    script = f"import sys; sys.stdout.write('x' * {offset} + '{letter}' + 'y' * 4095 + '{letter}')"
    run_id = rig.begin(executor, sys.executable, "-S", "-X", "utf8", "-c", script)
    result, _ = rig.finish(executor, run_id)
    assert rig.stdout(run_id).decode() == text
    assert text.startswith(result.stdout.head.decode())
    assert text.endswith(result.stdout.tail.decode())


def test_output_over_the_cap_is_truncated_and_counted(rig: Rig, executor: Executor) -> None:
    limits = msgspec.structs.replace(NO_LIMITS, output_max_bytes=1000)
    run_id = rig.begin(executor, "seq", "1000", limits=limits)
    result, _ = rig.finish(executor, run_id)
    expected = b"".join(b"%d\n" % number for number in range(1, 1001))
    assert result.status is Status.OK
    assert rig.stdout(run_id) == expected[:1000]
    assert (result.stdout.written, result.stdout.kept, result.stdout.truncated) == (len(expected), 1000, True)
    assert result.stdout.sha256 == hashlib.sha256(expected).hexdigest()


def test_exactly_the_cap_is_not_truncated(rig: Rig, executor: Executor) -> None:
    limits = msgspec.structs.replace(NO_LIMITS, output_max_bytes=10)
    result = rig.shell(executor, "printf 0123456789", limits=limits, output_limit_action="fail")
    assert (result.status, result.stdout.truncated) == (Status.OK, False)


@pytest.mark.parametrize("script", ["yes", "printf 012345678901", "exec cat /dev/zero"])
def test_output_over_the_cap_can_fail_the_run(rig: Rig, executor: Executor, script: str) -> None:
    limits = msgspec.structs.replace(NO_LIMITS, output_max_bytes=10, grace_ms=500)
    result = rig.shell(executor, script, limits=limits, output_limit_action="fail")
    assert (result.status, result.reason) == (Status.ERROR, Reason.OUTPUT_LIMIT)
    assert result.stdout.kept == 10
    assert executor.descendants() == []


def test_a_flood_is_bounded_and_deadlines_still_act(rig: Rig, executor: Executor) -> None:
    """B157: disk within the cap, memory flat."""
    before_kib = rig.free(executor).rss_kib
    limits = msgspec.structs.replace(NO_LIMITS, output_max_bytes=MIB, timeout_ms=2000, grace_ms=500)
    run_id = rig.begin(executor, "sh", "-c", "yes & yes >&2 & cat /dev/zero", limits=limits)
    begun = now_ms()
    result, free = rig.finish(executor, run_id)
    assert now_ms() - begun < 5000
    assert result.reason is Reason.TIMED_OUT
    assert result.stdout.written > 20 * MIB
    assert (rig.directory(run_id) / "stdout").stat().st_size == MIB == result.stdout.kept
    assert free.rss_kib - before_kib < 4096
    assert executor.descendants() == []


def test_a_flood_can_be_cancelled(rig: Rig, executor: Executor) -> None:
    run_id = rig.begin(executor, "yes", limits=msgspec.structs.replace(NO_LIMITS, output_max_bytes=MIB))
    rig.wait_for("progress", lambda: rig.scheduler.progress)
    executor.pair.send(pair.encode(pair.CancelRun(run_id, "enough")))
    begun = now_ms()
    result, _ = rig.finish(executor, run_id)
    assert result.reason is Reason.CANCELLED
    assert now_ms() - begun < 2000


def test_output_after_the_drain_is_lost_and_the_run_ends(rig: Rig, executor: Executor) -> None:
    result = rig.shell(executor, "echo first; (sleep 2; echo late) &")
    assert result.stdout.head == b"first\n"


def test_a_task_that_closes_its_output_runs_on(rig: Rig, executor: Executor) -> None:
    result = rig.shell(executor, "echo x; exec >&- 2>&-; sleep 0.5; exit 4")
    assert (result.exit_code, result.stdout.head) == (4, b"x\n")
    assert result.duration_ms >= 500


def test_output_that_cannot_be_stored_is_counted_as_truncated(rig: Rig, executor: Executor) -> None:
    run_id = rig.publish_command(executor, "sh", "-c", "echo x; exit 5")
    (rig.directory(run_id) / "stdout").mkdir()
    rig.hand_over(executor, run_id)
    result, free = rig.finish(executor, run_id)
    assert (result.exit_code, result.stdout.kept, result.stdout.truncated) == (5, 0, True)
    assert result.stdout.head == b"x\n"
    assert free.fit


def test_markup_and_control_bytes_are_kept_verbatim(rig: Rig, executor: Executor, tmp_path: Path) -> None:
    """B160, B161: bytes are kept; showing them safely is for those who show them."""
    text = b"<script>alert(1)</script></pre></table>\x1b[31mred\x1b[0m\rprogress\0\n"
    (tmp_path / "text").write_bytes(text)
    run_id = rig.begin(executor, "cat", str(tmp_path / "text"))
    result, _ = rig.finish(executor, run_id)
    assert rig.stdout(run_id) == result.stdout.head == text
