"""Retries, catch-up, pacing and the words of a schedule on the command line."""

import msgspec
import pytest

from cronward.cli.describe import job_text
from cronward.cli.findings import Level
from cronward.cli.main import main
from cronward.cli.service import status_text
from cronward.cli.service_checks import check_deadlines
from cronward.protocol.control import Request
from cronward.protocol.job import CatchUp, Every, Pacing, Retry
from cronward.protocol.views import AutoDisabledView, JobStateView, SlotView
from tests.unit.cli.samples import NOW_MS, job, service_status
from tests.unit.cli.scripted import ScriptedRouter, ok

HOUR = 3_600_000


def state(**fields: object) -> JobStateView:
    return msgspec.structs.replace(JobStateView(next_run_at_ms=NOW_MS + 240_000), **fields)


def test_a_job_says_that_it_was_switched_off() -> None:
    known = state(auto_disabled=AutoDisabledView("consecutive-failures", NOW_MS - 120_000, 10))
    text = job_text(msgspec.structs.replace(job(), state=known), NOW_MS)
    assert "switched off  consecutive-failures, 10 in a row, 2 min ago" in text


def test_a_job_says_why_it_is_due_when_it_is() -> None:
    slots = [SlotView(NOW_MS + 30_000, "", "a quick retry of its last run"), SlotView(NOW_MS + 300_000, "")]
    text = job_text(msgspec.structs.replace(job(), next_slots=slots), NOW_MS)
    assert "in 30 s  (a quick retry of its last run)\nthen " in text


def test_a_job_shows_the_rules_of_its_own() -> None:
    view = msgspec.structs.replace(
        job(), retry=Retry(preset="goclaw", delays_seconds=(1, 2)), catch_up=CatchUp("all"), pacing=Pacing(5)
    )
    text = job_text(view, NOW_MS)
    assert 'preset "goclaw", delaysSeconds [1,2]' in text
    assert 'policy "all"' in text
    assert "min 5" in text
    assert "due " not in text


def test_rules_are_taken_away(control: ScriptedRouter, query: ScriptedRouter) -> None:
    for router in (control, query):
        router.start(lambda request: [ok(request, msgspec.to_builtins(job()))])
    assert main(["edit", "backup", "--clear-pacing", "--clear-retry", "--clear-catch-up"]) == 0
    sent: Request = control.requests[-1]
    patch = msgspec.json.decode(sent.params, type=dict[str, object])["patch"]
    assert patch == {"pacing": None, "retry": None, "catchUp": None}


def test_a_schedule_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "0 9 13 * 5", "--tz", "Europe/Paris", "--explain"]) == 0
    assert "in words  at 09:00 on the 13th, and on Fri, Europe/Paris time" in capsys.readouterr().out
    assert main(["next", "every 90m", "--explain", "--json"]) == 0
    assert '"words": "every 1h30m, counted from a fixed instant"' in capsys.readouterr().out


def test_deadlines_far_ahead_are_named_and_others_are_not() -> None:
    hourly = Every(HOUR, 0)
    far = job("far", schedule=hourly, next_ms=NOW_MS + 100 * HOUR)
    near = job("near", schedule=hourly, next_ms=NOW_MS + HOUR // 2)
    failing = msgspec.structs.replace(
        far, name="failing", state=state(next_run_at_ms=NOW_MS + 100 * HOUR, due_kind="backoff")
    )
    from_the_future = msgspec.structs.replace(
        failing,
        name="put off",
        state=state(next_run_at_ms=NOW_MS + 100 * HOUR, due_kind="backoff", last_run_at_ms=NOW_MS + 99 * HOUR),
    )
    assert check_deadlines([near, from_the_future], NOW_MS).text.startswith("put off (every 1h)")
    finding = check_deadlines([far, near, failing], NOW_MS)
    assert finding.level is Level.WARN
    assert "far (every 1h)" in finding.text
    assert "near" not in finding.text
    assert "failing" not in finding.text
    assert check_deadlines([near, failing], NOW_MS).level is Level.OK


def test_status_counts_them() -> None:
    here = {"stateDir": "/s", "stateDirSource": "-", "runtimeDir": "/r", "runtimeDirSource": "-"}
    assert "far ahead" not in status_text(service_status(), here)
    assert "2 jobs by a clock that was set back" in status_text(service_status(deadlines_far_ahead=2), here)


def test_next_of_a_job_begins_with_what_it_will_run(query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    retry_ms = NOW_MS + 30_000
    slots = [SlotView(retry_ms, "", "a quick retry of its last run"), SlotView(NOW_MS + 85_000, "")]
    view = msgspec.structs.replace(job(), next_slots=slots)
    query.start(lambda request: [ok(request, view)])
    assert main(["next", "backup", "-n", "3", "--json"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)["slots"]
    assert [slot["atMs"] for slot in told] == [retry_ms, NOW_MS + 85_000, NOW_MS + 385_000]
    assert main(["next", "backup", "-n", "1"]) == 0
    assert "(a quick retry of its last run)" in capsys.readouterr().out


def test_next_of_a_job_that_is_off_says_so(query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    view = msgspec.structs.replace(job(), enabled=False)
    query.start(lambda request: [ok(request, view)])
    assert main(["next", "backup"]) == 0
    assert "but       the job is disabled; these are the slots that it would have" in capsys.readouterr().out


def test_next_of_a_job_that_is_flagged_says_so(query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    view = msgspec.structs.replace(job(), flag="the zone is gone")
    query.start(lambda request: [ok(request, view)])
    assert main(["next", "backup"]) == 0
    assert "but       the job is flagged and not run: the zone is gone" in capsys.readouterr().out
    assert main(["next", "backup", "--json"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert told["remark"] == "the job is flagged and not run: the zone is gone"
