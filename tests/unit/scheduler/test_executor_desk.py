"""What executors say: hello, progress, outcome. Proof is asked for, nothing is recorded twice."""

from cronward.protocol import ids, outcome, run
from cronward.protocol.outcome import Outcome, Reason, Status
from cronward.protocol.views import CancelAnswer
from tests.support.scheduler_bench import EXECUTOR, KEY, Bench

ELSEWHERE = [b"elsewhere"]


def answers(bench: Bench) -> list[run.ToExecutor]:
    return [run.decode_to_executor(frames[-1]) for frames in bench.ports.run_wire.sent]


def hello(run_id: str) -> run.Hello:
    return run.Hello(run_id, ids.run_secret(KEY, run_id), 99)


def test_a_hello_vouches_for_the_run_and_is_answered(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    ready.crash()
    assert ready.run(run_id).unverified_since_ms is not None
    ready.say(hello(run_id))
    assert answers(ready) == [run.HelloAnswer(run_id, ready.world.instance)]
    view = ready.run(run_id)
    assert (view.unverified_since_ms, view.stalled_since_ms) == (None, None)
    heard_ms = ready.clock.wall
    ready.turn(25_000)
    assert ready.run(run_id).stalled_since_ms == heard_ms


def test_progress_is_taken_from_the_peer_that_said_hello(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    ready.say(run.Progress(run_id, "running", 10, 0))
    assert ready.run(run_id).phase is None
    ready.say(hello(run_id))
    ready.say(run.Progress(run_id, "running", 10, 3))
    ready.say(run.Progress(run_id, "cleanup", 99, 99), address=ELSEWHERE)
    view = ready.run(run_id)
    assert view.phase == "running"
    assert view.stdout is not None
    assert view.stderr is not None
    assert (view.stdout.written, view.stderr.written) == (10, 3)


def test_a_wrong_secret_is_not_heard(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    body = outcome.encode(ready.outcome(run_id))
    ready.say(run.Hello(run_id, "wrong", 1))
    ready.say(run.Report(run_id, "wrong", body))
    ready.say(run.Report(run_id, ids.run_secret(KEY, "another"), body))
    assert answers(ready) == []
    assert ready.run(run_id).state == "active"


def test_an_outcome_needs_no_hello_and_is_acknowledged_each_time(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    ready.report(run_id)
    ready.report(run_id)
    assert answers(ready) == [run.Recorded(run_id)] * 2
    assert ready.run(run_id).late_outcome is None


def test_an_outcome_of_an_unknown_run_is_acknowledged(ready: Bench) -> None:
    ready.report("nobody")
    assert answers(ready) == [run.Recorded("nobody")]
    assert ready.states() == {}


def test_an_outcome_that_names_another_run_is_refused(ready: Bench) -> None:
    run_id, other = ready.start(ready.add()), ready.start(ready.add())
    body = outcome.encode(ready.outcome(other))
    ready.say(run.Report(run_id, ids.run_secret(KEY, run_id), body))
    ready.say(run.Report(run_id, ids.run_secret(KEY, run_id), body[:-2]))
    assert answers(ready) == []
    assert ready.states() == {run_id: "active", other: "active"}


def test_an_order_to_end_is_the_answer_to_the_next_hello_until_the_run_is_over(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    ready.ask("run.cancel", CancelAnswer, {"runId": run_id, "why": "enough"})
    ready.crash()
    ready.say(hello(run_id))
    ready.say(hello(run_id))
    for answer in answers(ready):
        assert isinstance(answer, run.HelloAnswer)
        assert answer.cancel is not None
        assert "enough" in answer.cancel
    ready.report(run_id, Status.OK)
    ready.say(hello(run_id))
    assert answers(ready)[-1] == run.HelloAnswer(run_id, ready.world.instance, None)


def test_an_abandoned_run_is_still_told_to_end(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    ready.ask("run.cancel", CancelAnswer, {"runId": run_id, "abandon": True})
    ready.crash()
    ready.say(hello(run_id))
    (answer,) = answers(ready)
    assert isinstance(answer, run.HelloAnswer)
    assert answer.cancel is not None


def test_memory_of_peers_ends_with_their_runs(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    ready.say(hello(run_id))
    ready.report(run_id)
    ready.say(hello(run_id))
    ready.say(run.Hello("nobody", ids.run_secret(KEY, "nobody"), 1))
    assert ready.world.executors == {}
    assert ready.world.link.unverified_since_ms == {}


def test_garbage_from_an_executor_changes_nothing(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    whole = run.encode(hello(run_id))
    for data in (b"", b"\xc1", b"\xff" * 100, whole[:-5], run.encode(run.Recorded(run_id))):
        ready.ports.batch.run.append((EXECUTOR, data))
    ready.turn()
    assert answers(ready) == []
    ready.report(run_id)
    assert ready.run(run_id).state == "ok"


def test_an_outcome_that_does_not_say_why_is_recorded_and_acknowledged(ready: Bench) -> None:
    run_id = ready.start(ready.add())
    told = Outcome(run_id, Status.ERROR, None, "", ready.clock.wall, ready.clock.wall, 0)
    ready.say(run.Report(run_id, ids.run_secret(KEY, run_id), outcome.encode(told)))
    assert (ready.run(run_id).state, ready.run(run_id).reason) == ("error", Reason.UNCLASSIFIED)
