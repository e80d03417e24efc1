"""The command line against the real service, started by `cronward up`."""

import re
import subprocess
import threading
from pathlib import Path

import msgspec
import pytest

from cronward.protocol.clock import SystemClock
from cronward.protocol.ids import run_key
from cronward.protocol.status_client import Snapshot, StatusClient
from tests.e2e.cli.service import CRONWARD, Service
from tests.support.waiting import now_ms, wait_until


def add(service: Service, name: str, *words: str, schedule: str = "every 1d") -> str:
    """Adds a job that is not due soon and returns its id."""
    return str(service.ask("add", schedule, "--name", name, *words)["id"])


def test_a_job_is_created_listed_shown_run_and_removed(running: Service) -> None:
    done = running.run("add", "every 10m", "--name", "hello", "--", "/bin/echo", "hi there")
    assert done.returncode == 0, done
    assert "next  " in done.stdout
    assert "hello" in running.run("list").stdout
    assert "/bin/echo 'hi there'" in running.run("show", "HELLO").stdout
    waited = running.run("run", "hello", "--wait")
    assert (waited.returncode, "ended: ok" in waited.stdout) == (0, True), waited
    assert running.run("logs", "hello").stdout == "hi there\n"
    assert running.run("rm", "hello").returncode == 0
    assert running.run("show", "hello").returncode == 1


def test_run_wait_tells_a_failure_by_its_exit_code(running: Service) -> None:
    add(running, "fails", "--command", "echo broken >&2; exit 3")
    done = running.run("run", "fails", "--wait")
    assert (done.returncode, "exit 3" in done.stdout) == (1, True), done
    assert running.run("logs", "fails").stderr == "broken\n"
    assert re.search(r"fails +error/exit_code .* 3$", running.run("runs", "fails").stdout, re.MULTILINE)


def test_the_answer_to_run_names_a_run_that_exists(running: Service) -> None:
    """B202."""
    add(running, "exists", "--", "/bin/true")
    run_id = str(running.ask("run", "exists")["runId"])
    entries = running.ask("runs", "exists")["entries"]
    assert isinstance(entries, list)
    assert [entry["runId"] for entry in entries] == [run_id]


def test_every_hour_of_a_zone_is_shown_as_that_hour(running: Service) -> None:
    """B064, and B055: the zone is part of each answer."""
    for hour in range(24):
        schedule = {"kind": "cron", "expr": f"0 {hour} * * *", "tz": "Asia/Yekaterinburg"}
        created = running.add_command_job(["true"], schedule, fields={"name": f"hour-{hour:02}"})
        assert created.tz == "Asia/Yekaterinburg"
        assert f"T{hour:02}:00:00+05:00" in created.next_slots[0].local
    listed = running.run("list").stdout
    for hour in range(24):
        assert re.search(rf"^hour-{hour:02} .* {hour:02}:00 \+05:00", listed, re.MULTILINE), listed


def test_a_job_without_a_zone_says_in_which_one_it_is_read(running: Service) -> None:
    """B055."""
    done = running.run("add", "0 13 * * *", "--name", "no zone", "--", "true")
    assert "0 13 * * * (UTC)" in done.stdout
    assert re.search(r"next +\w+ \d+-\d+-\d+ 13:00:00 \+00:00 UTC", done.stdout)


@pytest.mark.parametrize("ago_ms", [3_600_000, 120_000])
def test_a_time_that_is_past_is_refused(running: Service, ago_ms: int) -> None:
    """B193."""
    done = running.run("add", "--at", str(now_ms() - ago_ms), "--", "true")
    assert (done.returncode, "in the past" in done.stderr) == (1, True), done


def test_a_past_of_seconds_is_due_at_once(running: Service) -> None:
    """B193: the tolerance of a minute is documented."""
    job = running.ask("add", "--at", str(now_ms() - 1_000), "--name", "just now", "--keep-after-run", "--", "true")
    wait_until(lambda: running.ask("runs", str(job["id"]))["total"] == 1, "it ran")


def test_hostile_names_and_output_are_harmless_text(running: Service) -> None:
    """B160, B161."""
    refused = running.run("add", "every 1d", "--name", "evil\x1b[2J", "--", "true")
    assert refused.returncode == 1
    assert "\x1b" not in refused.stderr
    name = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    add(running, name, "--command", r"printf '\033[31m</pre></table>\r\n\0'; exit 1")
    shown = [
        running.run("run", name, "--wait"),
        running.run("list"),
        running.run("show", name),
        running.run("runs", name),
    ]
    assert all("\x1b" not in done.stdout + done.stderr for done in shown)
    assert name in shown[1].stdout
    assert "\x1b[31m" in running.run("logs", name).stdout, "a pipe gets every byte"


def test_edit_sends_what_changed_and_keeps_the_rest(running: Service) -> None:
    add(running, "editable", "--command-env", "A=1", "--", "/bin/echo", "one", schedule="0 4 * * *")
    assert (
        running.run(
            "edit", "editable", "--tz", "Europe/Paris", "--command-env", "B=2", "--", "/bin/echo", "two"
        ).returncode
        == 0
    )
    job = msgspec.json.decode(running.run("get", "editable").stdout)
    assert (job["schedule"]["expr"], job["schedule"]["tz"]) == ("0 4 * * *", "Europe/Paris")
    assert job["payload"] == {"kind": "command", "argv": ["/bin/echo", "two"], "env": {"A": "1", "B": "2"}}


def test_disable_and_enable(running: Service) -> None:
    add(running, "switched", "--", "true")
    assert "disabled" in running.run("disable", "switched").stdout
    assert "switched" not in running.run("list").stdout
    assert "switched" in running.run("list", "--all").stdout
    assert "next run" in running.run("enable", "switched").stdout


def test_declared_jobs_converge(running: Service) -> None:
    words = ["add", "every 2h", "--declaration-key", "k1", "--name", "declared"]
    assert "created" in running.run(*words, "--", "true").stdout
    assert "unchanged" in running.run(*words, "--", "true").stdout
    assert "updated" in running.run(*words, "--", "false").stdout


def test_an_active_run_is_followed_cancelled_and_recorded(running: Service) -> None:
    add(running, "long", "--command", "echo begun; sleep 60")
    run_id = str(running.ask("run", "long")["runId"])
    key = run_key(run_id)
    following = subprocess.Popen(
        [CRONWARD, "logs", key[:8], "-f"], env=running.environ, stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "begun\n"
    assert "being ended" in running.run("cancel", "long", "--why", "enough").stdout
    assert following.wait(20) == 0
    following.stdout.close()
    entries = running.ask("runs", "long")["entries"]
    assert isinstance(entries, list)
    assert (entries[0]["status"], entries[0]["reason"]) == ("error", "cancelled")
    assert "too_late" in str(running.ask("cancel", key)["result"])


def test_status_prints_the_directories_in_use_and_what_named_them(running: Service) -> None:
    """B241."""
    out = running.run("status").stdout
    assert f"{running.paths.state} (CRONWARD_STATE_DIR)" in out
    assert f"{running.paths.runtime} (CRONWARD_RUNTIME_DIR)" in out
    flagged = running.run("--state", str(running.paths.state), "status", "--json")
    assert msgspec.json.decode(flagged.stdout)["client"]["stateDirSource"] == "--state"


def test_pause_and_resume(running: Service) -> None:
    assert running.run("pause").returncode == 0
    assert "paused" in running.run("status").stdout
    assert running.run("resume").returncode == 0
    assert running.status().mode == "running"


def test_next_needs_no_scheduler_for_an_expression(running: Service) -> None:
    words = ("next", "30 2 * * *", "--tz", "America/New_York", "--from", "2026-03-07T12:00", "-n", "2")
    out = running.run(*words).stdout
    assert "Sun 2026-03-08 03:00:00 -04:00 EDT" in out
    assert "moved from" in out
    slots = running.ask(*words)["slots"]
    assert isinstance(slots, list)
    assert [slot["atMs"] for slot in slots] == [1_772_953_200_000, 1_773_037_800_000]


def test_next_of_a_job_is_that_of_its_show(running: Service) -> None:
    add(running, "previewed", "--", "true", schedule="0 * * * *")
    shown = re.findall(r"(?:next|then)  (.*?)  ", running.run("show", "previewed").stdout)
    assert re.findall(r"(?:next|then)  (.*?)  ", running.run("next", "previewed", "-n", "3").stdout) == shown


def test_doctor_finds_nothing_wrong_with_a_running_service(running: Service) -> None:
    done = running.run("doctor", "--json")
    findings = msgspec.json.decode(done.stdout)["findings"]
    assert (done.returncode, [each for each in findings if each["level"] == "fail"]) == (0, [])
    assert {"launcher", "database", "scheduler lock", "query socket", "deadlines"} <= {
        each["check"] for each in findings
    }


def test_a_backup_is_made_checked_and_never_overwrites(running: Service, tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    done = running.run("backup", str(file))
    assert (done.returncode, "checked" in done.stdout) == (0, True), done
    again = running.run("backup", str(file))
    assert (again.returncode, "exists" in again.stderr) == (1, True)


def test_watch_prints_events_as_they_happen(running: Service) -> None:
    add(running, "watched", "--", "true")
    watching = subprocess.Popen([CRONWARD, "watch", "--json"], env=running.environ, stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    try:
        assert msgspec.json.decode(watching.stdout.readline())["type"] == "snapshot"
        running.run("run", "watched", "--wait")
        for line in watching.stdout:
            event = msgspec.json.decode(line)
            if event["type"] == "event" and event["payload"].get("jobName") == "watched":
                break
        else:
            raise AssertionError("the run was not seen")
    finally:
        watching.kill()
        watching.wait(10)
        watching.stdout.close()


def test_busy_users_meet_no_lock_and_no_slot_is_skipped(running: Service) -> None:
    """B230: the command line and the timer at the same time. (Shorter and narrower than the report's five minutes.)"""
    ticker = add(running, "ticker", "--", "true", schedule="* * * * * *")
    add(running, "target", "--", "true")
    problems: list[str] = []

    def use() -> None:
        for words in (("list",), ("edit", "target", "--description", "x"), ("run", "target"), ("runs", "target")):
            done = running.run(*words, "--json")
            expected = done.returncode == 0 or "CRON_JOB_CHANGED" in done.stderr or "already-running" in done.stdout
            if not expected:
                problems.append(f"{words}: {done}")

    users = [threading.Thread(target=use) for _ in range(5)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert problems == []
    running.run("disable", ticker)
    entries = running.ask("runs", ticker, "--status", "ok", "--limit", "200", "--sort", "asc")["entries"]
    assert isinstance(entries, list)
    slots = [entry["slotMs"] for entry in entries]
    assert slots == sorted(set(slots))
    state = running.ask("get", ticker)["state"]
    assert isinstance(state, dict)
    without_run = set(range(slots[0], slots[-1], 1000)) - set(slots)
    assert len(without_run) <= state.get("consumedSlots", 0), "each slot has its run, or came while one was live"


def test_a_dashboard_follows_through_the_status_directory_alone(running: Service) -> None:
    """docs/clients.md: what the example there does."""
    with StatusClient(running.paths, SystemClock()) as status:
        update = status.wait(5_000)
        assert isinstance(update, Snapshot)
        assert update.view.service.mode == "running"
