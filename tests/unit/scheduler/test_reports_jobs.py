"""Reports of users of other schedulers, replayed on the bench: zones, rows of an earlier release, runs by hand,
failures. The number in a name is the report's."""

import time
from collections.abc import Iterator, Mapping

import msgspec
import pytest

from cronward.protocol import ids, outcome, run
from cronward.protocol.config import Config
from cronward.protocol.job import Cron
from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import JobList, ServiceStatus
from cronward.schedule.at import parse_at
from tests.support.following import Followed, end_all, pass_to, restart_at
from tests.support.scheduler_bench import KEY, START_MS, Bench

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def instants(*texts: str) -> list[int]:
    return [parse_at(text) for text in texts]


# zones


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/New_York"])
def host_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    """The zone of the host."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("host_zone")
@pytest.mark.parametrize("deadline", ["kept", "lost"])
def test_b053_a_restart_plans_in_the_zone_of_the_job(ready: Bench, deadline: str) -> None:
    """By UTC the next 19:00 after the run would be two hours later, and so missed: it is the same slot."""
    pass_to(ready, "2027-07-01T16:59:58Z")
    job = Followed(ready, {"kind": "cron", "expr": "0 19 * * *", "tz": "Europe/Paris"})
    job.go_to(2 * SECOND)
    job.end()
    assert job.slots() == instants("2027-07-01T17:00Z")
    if deadline == "lost":
        ready.sql("UPDATE job_state SET next_due_ms = NULL")
    restart_at(ready, "2027-07-02T09:21Z")
    assert job.runs() == [(2 * SECOND, "ok")]
    assert job.next_ms == parse_at("2027-07-02T17:00Z")
    pass_to(ready, "2027-07-02T16:59:58Z")
    job.go_to(DAY + 2 * SECOND)
    assert job.slots() == instants("2027-07-01T17:00Z", "2027-07-02T17:00Z")


def ran_daily(bench: Bench, job: Followed, *expected: str) -> None:
    """The service starts a minute before each slot; each day has its run, and no other."""
    for instant in expected:
        restart_at(bench, instant)
        before = job.slots()
        bench.turn(MINUTE)
        bench.turns()
        assert job.slots() == [*before, parse_at(instant) + MINUTE]
        job.end()


def test_b062_another_default_zone_neither_moves_nor_starves_a_job(bench: Bench) -> None:
    """The zone was settled when the job was added. That of the job itself moves its slot once."""
    bench.reconcile()
    pass_to(bench, "2027-06-01T12:00Z")
    job = Followed(bench, {"kind": "cron", "expr": "0 4 * * *"})
    assert job.next_ms == parse_at("2027-06-02T04:00Z")
    bench.config = Config(default_tz="Europe/Brussels")
    ran_daily(bench, job, "2027-06-02T03:59Z", "2027-06-03T03:59Z", "2027-06-04T03:59Z")
    schedule = job.now.schedule
    assert isinstance(schedule, Cron)
    assert schedule.tz == "UTC"
    new = Followed(bench, {"kind": "cron", "expr": "0 4 * * *"})
    moved = job.edit(schedule={"kind": "cron", "tz": "Europe/Brussels"})
    assert moved.state.next_run_at_ms == new.next_ms == parse_at("2027-06-05T02:00Z")
    ran_daily(bench, job, "2027-06-05T01:59Z", "2027-06-06T01:59Z", "2027-06-07T01:59Z")
    assert job.decisions() == []


# rows of an earlier release


def serve_all(bench: Bench, ms: int) -> None:
    """Time passes, and what came due at its end has run."""
    bench.turn(ms)
    bench.turns()
    while "active" in bench.states().values():
        end_all(bench)
        bench.turn()


def test_b101_a_column_without_a_value_keeps_no_job_from_firing(ready: Bench) -> None:
    """Each job lost the value of another column, after it had run, had failed and was edited."""
    columns = [
        (table, str(name))
        for table in ("jobs", "job_state")
        for name, not_null, key in ready.sql(f"SELECT name, \"notnull\", pk FROM pragma_table_info('{table}')")
        if not not_null and not key
    ]
    assert ("job_state", "next_due_ms") in columns
    jobs = [Followed(ready, {"kind": "every", "everyMs": HOUR}) for _ in columns]
    for job in jobs:
        job.reschedule()
        ready.start(job.view)
        job.fail()
    for job, (table, column) in zip(jobs, columns, strict=True):
        where = "position = (SELECT position FROM jobs WHERE job_id = ?)"
        ready.sql(f"UPDATE {table} SET {column} = NULL WHERE {where}", job.view.id)
    ready.crash()
    ready.reconcile()
    listed = ready.ask("cron.list", JobList, {"limit": 100}).jobs
    assert len(listed) == len(columns)
    expected = (True, None, jobs[0].zero_ms + HOUR)
    assert {(view.enabled, view.flag, view.state.next_run_at_ms) for view in listed} == {expected}
    serve_all(ready, HOUR)
    assert [job.runs()[1:] for job in jobs] == [[(HOUR, "ok")]] * len(jobs)


def without_one_key(definition: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """The definition without each of its keys, and with null for each, at the top and one level below."""
    for key, value in definition.items():
        rest = {name: kept for name, kept in definition.items() if name != key}
        yield f"no {key}", rest
        yield f"null {key}", rest | {key: None}
        if isinstance(value, dict):
            yield from ((f"{key}: {what}", rest | {key: part}) for what, part in without_one_key(value))


@pytest.mark.parametrize(
    ("schedule", "needed"),
    [
        ({"kind": "every", "everyMs": HOUR, "anchorMs": START_MS}, {"everyMs", "anchorMs"}),
        ({"kind": "cron", "expr": "0 * * * *", "tz": "UTC", "staggerMs": 0}, {"expr", "tz"}),
    ],
    ids=["every", "cron"],
)
def test_b101_a_definition_without_a_newer_key_fires_or_is_flagged(
    ready: Bench, schedule: dict[str, object], needed: set[str]
) -> None:
    """Whichever key it is: no job is listed as if all were well and does not run."""
    definition = {
        "name": "old",
        "schedule": schedule,
        "payload": {"kind": "command", "argv": ["/bin/true"], "env": {"A": "b"}, "envPolicy": "minimal"},
        "enabled": True,
        "retry": {"maxRetries": 1, "disableAfter": 3},
        "catchUp": {"policy": "latest", "maxRuns": 2},
        "delivery": {"mode": "none"},
        "wakeMode": "now",
    }
    changed = dict(without_one_key(definition))
    jobs = {what: Followed(ready, schedule) for what in changed}
    for what, job in jobs.items():
        text = msgspec.json.encode(changed[what]).decode()
        ready.sql("UPDATE jobs SET definition = ? WHERE job_id = ?", text, job.view.id)
    ready.crash()
    ready.reconcile()
    serve_all(ready, HOUR)
    flagged = {what for what, job in jobs.items() if job.now.flag is not None}
    assert ready.ask("service.status", ServiceStatus).jobs_flagged == len(flagged)
    serve_all(ready, HOUR)
    for what, job in jobs.items():
        if what not in flagged:
            assert job.runs() == [(HOUR, "ok"), (2 * HOUR, "ok")], what
    assert {what for what in flagged if "null" not in what} == {
        *("no name", "no schedule", "no payload", "payload: no argv", "schedule: no kind"),
        *(f"schedule: no {key}" for key in needed),
    }


# runs by hand


@pytest.mark.parametrize("policy", ["none", "latest"])
def test_b199_a_missed_slot_and_a_run_by_hand_leave_the_grid_where_it_is(ready: Bench, policy: str) -> None:
    pass_to(ready, "2027-06-01T00:30Z")
    anchor_ms = parse_at("2027-06-01T01:00Z")
    job = Followed(
        ready, {"kind": "every", "everyMs": DAY, "anchorMs": anchor_ms}, catchUp={"policy": policy}, name="daily"
    )
    job.go_to(30 * MINUTE)
    job.end()
    restart_at(ready, "2027-06-02T03:00Z")
    missed = instants("2027-06-02T01:00Z") if policy == "latest" else []
    assert job.slots() == [anchor_ms, *missed]
    end_all(ready)
    pass_to(ready, "2027-06-02T11:30Z")
    ready.start(job.view)
    ready.turn(7 * SECOND)
    job.end()
    assert job.next_ms == parse_at("2027-06-03T01:00Z")
    for instant in ("2027-06-03T00:59Z", "2027-06-04T00:59Z"):
        pass_to(ready, instant)
        ready.turn(MINUTE)
        ready.turns()
        assert job.slots()[-1] == parse_at(instant) + MINUTE
        job.end()
        assert job.next_ms == parse_at(instant) + MINUTE + DAY


# failures


def refuse(job: Followed) -> None:
    """The endpoint of its active run refuses the connection."""
    ((run_id,),) = job.bench.sql("SELECT run_id FROM runs WHERE job_id = ? AND state = 'active'", job.view.id)
    made = job.bench.outcome(str(run_id), Status.ERROR, Reason.UNCLASSIFIED)
    refused = msgspec.structs.replace(made, message="connect ECONNREFUSED 127.0.0.1:1", exit_code=None)
    job.bench.say(run.Report(str(run_id), ids.run_secret(KEY, str(run_id)), outcome.encode(refused)))


def test_b214_refused_connections_are_network_errors_within_bounds_and_one_success_resets(ready: Bench) -> None:
    """Twenty in a row, of a job that is never switched off: two quick retries, and a ladder that ends at an hour."""
    job = Followed(ready, {"kind": "cron", "expr": "*/5 * * * *", "tz": "UTC"}, retry={"disableAfter": 0})
    ready.turn(5 * MINUTE - SECOND)
    job.go_to(5 * MINUTE)
    waits = []
    for failures in range(1, 21):
        ended_ms = ready.clock.wall - job.zero_ms
        refuse(job)
        state = job.now.state
        assert (state.consecutive_errors, state.last_error) == (failures, "connect ECONNREFUSED 127.0.0.1:1")
        kind, due_ms = job.due or ("", 0)
        waits.append((kind, (due_ms - ended_ms) // SECOND))
        ready.turn(due_ms - ended_ms - SECOND)
        job.go_to(due_ms)
    assert waits == [("retry", 30), ("retry", 60), ("backoff", 300), ("backoff", 900), *[("backoff", 3600)] * 16]
    job.end()
    state = job.now.state
    assert (state.consecutive_errors, state.backoff_until_ms, state.last_error) == (0, None, None)
    kind, due_ms = job.due or ("", 0)
    assert (kind, due_ms % (5 * MINUTE)) == ("slot", 0)
    assert 0 < due_ms - (ready.clock.wall - job.zero_ms) <= 5 * MINUTE
    job.go_to(due_ms)
    refuse(job)
    assert job.due == ("retry", ready.clock.wall - job.zero_ms + 30 * SECOND)
