"""`run`, `runs`, `logs`, `cancel`: which run is meant, how it ended, what it wrote."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cronward.cli.logs import Sink, Tail, excerpt
from cronward.cli.main import main
from cronward.protocol.control import Request
from cronward.protocol.ids import run_key
from cronward.protocol.paths import Paths
from cronward.protocol.views import RunView, StreamView
from tests.unit.cli.samples import run
from tests.unit.cli.scripted import ScriptedRouter, ok, refusal

RUN_ID = "manual:j:1:abc-1"
KEY = run_key(RUN_ID)


def view(**changes: object) -> RunView:
    return run(run_id=RUN_ID, key=KEY, **changes)


def answer_run(answer: dict[str, object]) -> Callable[[Request], list[bytes]]:
    return lambda request: [ok(request, {"ok": True, "processInstanceId": "one"} | answer)]


@pytest.fixture
def directory(paths: Paths) -> Path:
    """The directory of a run that wrote to both streams."""
    made = paths.runs / KEY
    made.mkdir()
    (made / "stdout").write_bytes(b"out \xff\x1b[31m\n")
    (made / "stderr").write_bytes(b"err\n")
    (made / "outcome").touch()
    return made


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"enqueued": True, "runId": RUN_ID}, 0),
        ({"ran": True}, 0),
        ({"ran": False, "reason": "already-running"}, 1),
        ({"ran": False, "reason": "not-due"}, 1),
    ],
)
def test_run_exits_with_0_only_if_the_run_was_accepted(
    control: ScriptedRouter, answer: dict[str, object], code: int
) -> None:
    control.start(answer_run(answer))
    assert main(["run", "backup"]) == code


def test_the_answer_to_run_names_the_run(control: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    """B202: success means that there is a run, and says which."""
    control.start(answer_run({"enqueued": True, "runId": RUN_ID}))
    main(["run", "backup"])
    assert KEY[:12] in capsys.readouterr().out


@pytest.mark.parametrize(("completion", "code"), [("succeeded", 0), ("failed", 1), ("unknown", 1)])
def test_run_wait_exits_with_0_only_if_it_succeeded(
    control: ScriptedRouter, query: ScriptedRouter, capsys: pytest.CaptureFixture[str], completion: str, code: int
) -> None:
    control.start(answer_run({"enqueued": True, "runId": RUN_ID}))
    states = iter(["queued", "active", "active"])
    query.start(
        lambda request: [ok(request, msgspec.to_builtins(view(state=next(states, "ok"), completion_status=completion)))]
    )
    assert main(["run", "backup", "--wait", "--json"]) == code
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["completed"], told["completionStatus"], told["run"]["key"]) == (True, completion, KEY)
    assert len(query.requests) == 4


def test_run_wait_gives_up(control: ScriptedRouter, query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    control.start(answer_run({"enqueued": True, "runId": RUN_ID}))
    query.start(lambda request: [ok(request, msgspec.to_builtins(view(state="active")))])
    assert main(["run", "backup", "--wait", "--wait-timeout", "60ms"]) == 1
    assert "timed out" in capsys.readouterr().err


def test_run_wait_looks_at_least_once(control: ScriptedRouter, query: ScriptedRouter) -> None:
    control.start(answer_run({"enqueued": True, "runId": RUN_ID}))
    query.start(lambda request: [ok(request, msgspec.to_builtins(view(completion_status="succeeded")))])
    assert main(["run", "backup", "--wait", "--wait-timeout", "0"]) == 0


def by_job(request: Request) -> list[bytes]:
    """`backup` is a job whose latest run is RUN_ID; no run is called that."""
    if request.method == "run.get":
        asked = msgspec.json.decode(request.params)["runId"]
        found = asked == RUN_ID or KEY.startswith(asked)
        return [ok(request, msgspec.to_builtins(view())) if found else refusal(request, "RUN_NOT_FOUND")]
    if msgspec.json.decode(request.params)["id"] != "backup":
        return [refusal(request, "CRON_JOB_NOT_FOUND")]
    page = {"entries": [msgspec.to_builtins(view())], "total": 1, "offset": 0, "limit": 1}
    return [ok(request, page | {"hasMore": False, "nextOffset": None})]


@pytest.mark.parametrize("name", [RUN_ID, KEY, KEY[:6], "backup"])
def test_a_run_is_found_by_id_key_digits_or_job(
    query: ScriptedRouter, directory: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    query.start(by_job)
    assert main(["logs", name]) == 0
    captured = capfdbinary.readouterr()
    assert captured.out == b"out \xff\x1b[31m\n"
    assert captured.err == b"err\n"


def test_what_is_neither_run_nor_job_is_told(query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    query.start(by_job)
    assert main(["logs", "nothing"]) == 1
    assert "neither a run nor a job" in capsys.readouterr().err


@pytest.mark.parametrize("name", [RUN_ID, KEY, KEY[:6]])
def test_logs_need_no_scheduler(
    directory: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert main(["logs", name, "--stderr", "--timeout", "50"]) == 0
    captured = capfdbinary.readouterr()
    assert (captured.out, captured.err) == (b"", b"err\n")


def test_without_a_scheduler_digits_must_name_one_run(
    paths: Paths, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (paths.runs / (KEY[:8] + "0" * 24)).mkdir()
    assert main(["logs", KEY[:6], "--timeout", "50"]) == 1
    assert "more digits" in capsys.readouterr().err


def test_logs_fall_back_to_the_excerpt(query: ScriptedRouter, capfd: pytest.CaptureFixture[str]) -> None:
    stream = StreamView(written=1_000_003, kept=100, head="begin\n", tail="end\n")
    query.start(lambda request: [ok(request, msgspec.to_builtins(view(stdout=stream)))])
    assert main(["logs", RUN_ID, "--stdout"]) == 0
    captured = capfd.readouterr()
    assert captured.out == "begin\n\n… 999993 bytes …\nend\n"
    assert "no longer on disk" in captured.err


def test_logs_on_a_terminal_are_harmless(directory: Path, query: ScriptedRouter) -> None:
    """B161: control sequences of a job never reach the terminal."""
    main_end, terminal = os.openpty()
    try:
        sink = Sink(terminal)
        for part in (b"a\x1b[2J\0\r", "ü".encode()[:1], "ü".encode()[1:], b"\n"):
            sink.write(part)
        shown = b""
        while not shown.endswith(b"\n"):
            shown += os.read(main_end, 1000)
        assert shown.replace(b"\r\n", b"\n").decode() == "a\\x1b[2J\\x00\\rü\n"
    finally:
        os.close(main_end)
        os.close(terminal)


def test_follow_ends_with_the_run_and_loses_nothing(
    query: ScriptedRouter, directory: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What is written between the last look and the end of the run is still printed."""
    (directory / "outcome").unlink()
    asked = 0

    def answer(request: Request) -> list[bytes]:
        nonlocal asked
        asked += 1
        if asked == 2:
            with (directory / "stdout").open("ab") as stdout:
                stdout.write(b"." * 200_000 + b"last words\n")
        return [ok(request, msgspec.to_builtins(view(state="active" if asked == 1 else "ok")))]

    query.start(answer)
    assert main(["logs", RUN_ID, "-f", "--stdout"]) == 0
    assert capfdbinary.readouterr().out.endswith(b"last words\n")


def test_a_run_that_has_not_begun_is_told_as_such(query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    query.start(lambda request: [ok(request, msgspec.to_builtins(view(state="queued")))])
    assert main(["logs", RUN_ID]) == 0
    assert "not started yet" in capsys.readouterr().err


def test_a_tail_reads_a_file_that_comes_later(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "stdout")
    assert tail.read() == b""
    (tmp_path / "stdout").write_bytes(b"x")
    assert tail.read() == b"x"
    assert tail.read() == b""
    tail.close()


def test_an_excerpt_without_a_gap_has_no_mark() -> None:
    assert excerpt(StreamView(written=3, head="abc")) == "abc"
    assert excerpt(None) == ""


def test_cancel_asks_for_the_run_that_the_job_has(
    control: ScriptedRouter, query: ScriptedRouter, capsys: pytest.CaptureFixture[str]
) -> None:
    query.start(by_job)
    control.start(lambda request: [ok(request, {"runId": RUN_ID, "result": "too_late"})])
    assert main(["cancel", "backup", "--why", "full"]) == 0
    assert msgspec.json.decode(control.requests[0].params) == {"runId": RUN_ID, "why": "full"}
    assert "already ended" in capsys.readouterr().out


def test_runs_in_json_carry_local_times_with_offset(query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    query.start(by_job)
    assert main(["runs", "backup", "--json"]) == 0
    entry = msgspec.json.decode(capsys.readouterr().out)["entries"][0]
    assert entry["tsIso"].startswith("2026-12-02T")
    assert entry["tsIso"][-6] in "+-"
