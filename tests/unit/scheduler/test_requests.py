"""Requests at the edge: unreadable, unknown, forbidden, too big; each gets an answer and hurts nobody."""

import msgspec
import pytest

from cronward.protocol import control
from cronward.protocol.views import JobList, JobView, RunList, StatusSnapshot
from cronward.scheduler.requests import METHODS, Arrived
from tests.support.scheduler_bench import CLIENT, Bench, Refusal


def raw(bench: Bench, body: bytes, socket: str = "control") -> control.Response:
    bench.ports.batch.requests.append(Arrived(socket, CLIENT, body, None))
    bench.turn()
    return bench.ports.answers[-1]


def code(answer: control.Response) -> str:
    assert isinstance(answer.error, msgspec.Struct)
    return answer.error.code


def test_every_method_is_served() -> None:
    assert {*METHODS, "service.backup"} == {*control.READ_METHODS, *control.WRITE_METHODS}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b"7", b'{"id":1}', b'{"id":[],"method":"cron.status"}', b"\xff\xfe", b"[" * 100_000],
)
def test_what_cannot_be_read_is_answered_so(ready: Bench, body: bytes) -> None:
    answer = raw(ready, body)
    assert (answer.ok, answer.id, code(answer)) == (False, None, "INVALID_REQUEST")


@pytest.mark.parametrize("params", [b"null", b"[]", b"7", b'"x"'])
def test_parameters_have_to_be_an_object(ready: Bench, params: bytes) -> None:
    answer = raw(ready, b'{"id":"a","method":"cron.status","params":' + params + b"}")
    assert (answer.id, code(answer)) == ("a", "INVALID_REQUEST")


def test_deep_and_huge_values_are_no_bug(ready: Bench, caplog: pytest.LogCaptureFixture) -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    for params in (b'{"x":' + deep + b"}", b'{"offset":' + b"9" * 30 + b"}", b'{"offset":9223372036854775808}'):
        assert code(raw(ready, b'{"id":1,"method":"cron.list","params":' + params + b"}")) == "INVALID_REQUEST"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_parameters_are_closed_objects(ready: Bench) -> None:
    with pytest.raises(Refusal, match="unknown field `wat`"):
        ready.ask("cron.status", JobView, {"wat": 1})


@pytest.mark.parametrize("method", control.WRITE_METHODS)
def test_the_query_socket_changes_nothing(ready: Bench, method: str) -> None:
    assert code(raw(ready, msgspec.json.encode({"id": 1, "method": method}), "query")) == "FORBIDDEN"


def test_unknown_methods(ready: Bench) -> None:
    for socket in ("control", "query"):
        assert code(raw(ready, b'{"id":1,"method":"cron.fly"}', socket)) == "UNKNOWN_METHOD"


def test_callers_for_others_need_leave_for_commands(ready: Bench) -> None:
    job = {"schedule": {"kind": "every", "everyMs": 5}, "payload": {"kind": "command", "argv": ["x"]}}
    body = msgspec.json.encode({"id": 1, "method": "cron.add", "params": job, "caller": "telegram:42"})
    assert code(raw(ready, body)) == "FORBIDDEN"
    ready.world.settings.path.write_text("[command]\nremote = true\n")
    ready.world.settings.reload()
    assert raw(ready, body).ok
    assert ready.sql("SELECT caller FROM changes") == [("telegram:42",)]


def test_a_peer_that_does_not_read_is_told_and_nothing_is_done(ready: Bench) -> None:
    ready.ports.full = True
    with pytest.raises(Refusal, match="PEER_BACKLOG"):
        ready.add()
    ready.ports.full = False
    assert ready.sql("SELECT count(*) FROM jobs") == [(0,)]


def test_a_bug_in_one_request_is_answered_and_undone(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = METHODS["cron.add"]

    def broken(turn: object, caller: object, params: dict[str, object]) -> msgspec.Struct | None:
        real(turn, caller, params)  # type: ignore[arg-type]  # passed through
        raise RuntimeError("a bug")

    monkeypatch.setitem(METHODS, "cron.add", broken)
    with pytest.raises(Refusal, match="INTERNAL"):
        ready.add()
    assert ready.sql("SELECT count(*) FROM jobs") == [(0,)]
    assert [event.event for event in ready.ports.events if event.event == "cron"] == []


def test_events_have_no_gaps_and_the_snapshot_names_the_last(ready: Bench) -> None:
    for _ in range(3):
        ready.start(ready.add())
    numbers = [event.seq for event in ready.ports.events]
    assert numbers == list(range(1, len(numbers) + 1))
    snapshot = ready.ask("status.snapshot", StatusSnapshot)
    assert (snapshot.seq, snapshot.instance) == (numbers[-1], ready.world.instance)
    assert [view.state for view in snapshot.live] == ["active"] * 3
    assert len(snapshot.next_slots) == 3


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("order", ["nextRunAtMs", "updatedAtMs", "name"])
def test_pages_of_jobs_hold_each_job_once(ready: Bench, order: str, direction: str) -> None:
    for number in range(11):
        ready.add({"kind": "every", "everyMs": 60_000 * (1 + number % 4)}, name=f"job {number}", enabled=number % 3 > 0)
        ready.clock.advance(1)
    seen: list[JobView] = []
    offset: int | None = 0
    while offset is not None:
        params = {"includeDisabled": True, "limit": 2, "offset": offset, "sortBy": order, "sortDir": direction}
        page = ready.ask("cron.list", JobList, params)
        assert page.total == 11
        seen += page.jobs
        offset = page.next_offset
    assert len({job.id for job in seen}) == len(seen) == 11
    if order == "nextRunAtMs":
        times = [job.next_run_at_ms for job in seen if job.next_run_at_ms is not None]
        assert times == sorted(times, reverse=direction == "desc")
        assert all(job.next_run_at_ms is None for job in seen[len(times) :])  # last in either direction
    elif order == "name":
        names = [job.name for job in seen]
        assert names == sorted(names, reverse=direction == "desc")


def test_filters_of_jobs(ready: Bench) -> None:
    ready.add(name="alpha")
    ready.add({"kind": "cron", "expr": "@daily"}, name="beta", description="nightly ÄRGER")
    ready.add(name="gamma", enabled=False)

    def names(**params: object) -> list[str]:
        return [job.name for job in ready.ask("cron.list", JobList, {"sortBy": "name", **params}).jobs]

    assert names() == ["alpha", "beta"]
    assert names(includeDisabled=True) == ["alpha", "beta", "gamma"]
    assert names(enabled="disabled") == ["gamma"]
    assert names(scheduleKind="cron") == ["beta"]
    assert names(lastRunStatus="unknown") == ["alpha", "beta"]
    assert names(lastRunStatus="ok") == []
    assert names(query="NIGHTLY") == ["beta"]
    with pytest.raises(Refusal, match="sortBy"):
        names(sortBy="colour")


def test_history_is_paged_filtered_and_outlives_its_job(ready: Bench) -> None:
    job, other = ready.add(name="one"), ready.add(name="two")
    runs = []
    for _ in range(3):
        run_id = ready.start(job)
        ready.report(run_id)
        runs.append(run_id)
    live = ready.start(other)
    ready.post("cron.remove", {"id": job.id})
    ready.turn()

    def ids(**params: object) -> list[str]:
        return [entry.run_id for entry in ready.ask("cron.runs", RunList, params).entries]

    assert ids() == runs[::-1]
    assert ids(id=job.id, sortDir="asc", limit=2) == runs[:2]
    assert ids(id=job.id, offset=1) == runs[:2][::-1]
    assert ids(live=True)[0] == live
    assert ids(status="error") == []
    assert ids(runId=runs[0]) == [runs[0]]
    key = ready.run(runs[1]).key
    assert ready.run(key).run_id == ready.run(key[:12].upper()).run_id == runs[1]
    with pytest.raises(Refusal, match="CRON_JOB_NOT_FOUND"):
        ids(id="nobody")
