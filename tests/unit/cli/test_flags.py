"""What the flags of `add` and `edit` mean, as JSON for the scheduler."""

from collections.abc import Callable

import click
import msgspec
import pytest

from cronward.cli.add import added_job_text
from cronward.cli.jobs import switched_text
from cronward.cli.main import main
from cronward.cli.scheduleflags import at_fields, from_text, repeating_fields
from cronward.protocol.clock import SystemClock
from cronward.protocol.control import Request
from cronward.protocol.errors import Code
from cronward.protocol.job import At
from cronward.schedule.at import parse_at
from tests.unit.cli.samples import NOW_MS, job
from tests.unit.cli.scripted import ScriptedRouter, ok, refusal

Sent = Callable[[list[str]], dict[str, object]]


@pytest.fixture
def added(control: ScriptedRouter) -> Sent:
    """Runs `add` with the arguments and returns what it sent."""
    view = msgspec.to_builtins(job())

    def answer(request: Request) -> list[bytes]:
        declared = b"declarationKey" in bytes(request.params)
        return [ok(request, {"created": True, "updated": False, "job": view} if declared else view)]

    control.start(answer)

    def run(arguments: list[str]) -> dict[str, object]:
        assert main(["add", *arguments]) == 0
        sent = msgspec.json.decode(control.requests[-1].params, type=dict[str, object])
        request_id = sent.pop("requestId")
        assert isinstance(request_id, str)
        assert len(request_id) == 24
        return sent

    return run


def command(*argv: str, **more: object) -> dict[str, object]:
    return {"kind": "command", "argv": list(argv)} | more


@pytest.mark.parametrize(
    ("arguments", "definition"),
    [
        (
            ["every 10m", "--name", "x", "--", "/bin/echo", "hi", "--json"],
            {
                "name": "x",
                "schedule": {"kind": "every", "everyMs": 600_000},
                "payload": command("/bin/echo", "hi", "--json"),
            },
        ),
        (
            ["*/5 * * * *", "--", "date"],
            {"schedule": {"kind": "cron", "expr": "*/5 * * * *"}, "payload": command("date")},
        ),
        (
            ["@daily", "--catch-up", "all", "--catch-up-max-age", "30m", "--catch-up-max-runs", "3", "--", "x"],
            {
                "schedule": {"kind": "cron", "expr": "@daily"},
                "payload": command("x"),
                "catchUp": {"policy": "all", "maxAgeSeconds": 1800, "maxRuns": 3},
            },
        ),
        (
            ["@daily", "--retry-preset", "goclaw", "--max-retries", "0", "--disable-after", "5", "--", "x"],
            {
                "schedule": {"kind": "cron", "expr": "@daily"},
                "payload": command("x"),
                "retry": {"preset": "goclaw", "maxRetries": 0, "disableAfter": 5},
            },
        ),
        (
            ["@daily", "--retry-delays", "2s,1m30s", "--retry-jitter", "0.25", "--backoff", "30s", "--", "x"],
            {
                "schedule": {"kind": "cron", "expr": "@daily"},
                "payload": command("x"),
                "retry": {"delaysSeconds": [2, 90], "jitter": 0.25, "backoffSeconds": [30]},
            },
        ),
        (
            ["@daily", "--retry-on", "timeout,network", "--", "x"],
            {
                "schedule": {"kind": "cron", "expr": "@daily"},
                "payload": command("x"),
                "retry": {"transient": ["timeout", "network"]},
            },
        ),
        (
            ["every 10m", "--pacing-min", "30s", "--pacing-max", "1h", "--", "x"],
            {
                "schedule": {"kind": "every", "everyMs": 600_000},
                "payload": command("x"),
                "pacing": {"min": 30_000, "max": 3_600_000},
            },
        ),
        (
            ["@daily", "echo hi"],
            {"schedule": {"kind": "cron", "expr": "@daily"}, "payload": command("sh", "-lc", "echo hi")},
        ),
        (
            ["--cron", "0 9 * * 1", "--tz", "Europe/Paris", "standup", "--command", "echo $HOME"],
            {
                "name": "standup",
                "schedule": {"kind": "cron", "expr": "0 9 * * 1", "tz": "Europe/Paris"},
                "payload": command("sh", "-lc", "echo $HOME"),
            },
        ),
        (
            ["0 * * * *", "--exact", "--command-argv", '["a","b c"]'],
            {"schedule": {"kind": "cron", "expr": "0 * * * *", "staggerMs": 0}, "payload": command("a", "b c")},
        ),
        (
            ["--cron", "0 * * * *", "--stagger", "2m", "--disabled", "--declaration-key", "k", "--", "x"],
            {
                "schedule": {"kind": "cron", "expr": "0 * * * *", "staggerMs": 120_000},
                "payload": command("x"),
                "enabled": False,
                "declarationKey": "k",
            },
        ),
        (
            ["--at", "2030-03-01T09:00", "--tz", "Europe/Paris", "--keep-after-run", "--", "x"],
            {
                "schedule": {"kind": "at", "at": "2030-03-01T08:00:00.000Z"},
                "payload": command("x"),
                "deleteAfterRun": False,
            },
        ),
        (
            ["--at", "1900000000000", "--", "x"],
            {"schedule": {"kind": "at", "at": "2030-03-17T17:46:40.000Z"}, "payload": command("x")},
        ),
        (
            # ambiguous: the clocks show 02:30 twice, the earlier is meant
            ["--at", "2026-10-25T02:30", "--tz", "Europe/Paris", "--", "x"],
            {"schedule": {"kind": "at", "at": "2026-10-25T00:30:00.000Z"}, "payload": command("x")},
        ),
    ],
)
def test_add_sends(added: Sent, arguments: list[str], definition: dict[str, object]) -> None:
    assert added(arguments) == definition


def test_every_payload_flag_arrives(added: Sent) -> None:
    typed = (
        "--command-cwd /srv --command-env A=1 --command-env B=x=y --command-input text --timeout-seconds 5"
        " --no-output-timeout-seconds 0 --output-max-bytes 10 --user nobody --secret K=file:/k --secret T=env:TOKEN"
        " --env-policy inherit --output-limit-action fail --leave-children"
    )
    assert added(["every 1h", *typed.split(), "--", "./x"])["payload"] == command(
        "./x",
        cwd="/srv",
        env={"A": "1", "B": "x=y"},
        input="text",
        timeoutSeconds=5.0,
        noOutputTimeoutSeconds=0.0,
        outputMaxBytes=10,
        user="nobody",
        secrets={"K": {"file": "/k"}, "T": {"env": "TOKEN"}},
        envPolicy="inherit",
        outputLimitAction="fail",
        leaveChildren=True,
    )


def test_a_relative_program_is_found_from_here_since_the_job_runs_elsewhere(
    added: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/usr")
    assert added(["every 1h", "--", "./bin/env", "a"])["payload"] == command("/usr/bin/env", "a")


@pytest.mark.parametrize("text", ["20m", "+20m"])
def test_at_takes_a_duration_from_now(added: Sent, text: str) -> None:
    before = SystemClock().wall_ms()
    schedule = added(["--at", text, "--", "x"])["schedule"]
    assert isinstance(schedule, dict)
    assert 0 <= parse_at(schedule["at"]) - before - 20 * 60_000 < 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "x"], "Choose exactly one schedule"),
        (["--every", "1m", "--cron", "* * * * *", "--", "x"], "Choose exactly one schedule"),
        (["every 1m"], "There is no command"),
        (["every 1m", "--"], "no program"),
        (["every 1m", "echo", "--command", "x"], "exactly one command"),
        (["every 1m", "--command-argv", '{"a":1}'], "JSON array of strings"),
        (["every 1m", "--command-argv", "[]"], "JSON array of strings"),
        (["every", "10m", "--name", "n", "--", "x"], "is no schedule"),
        (["a", "b", "c"], "after `--`"),
        (["every 0s", "--", "x"], "Invalid --every"),
        (["every tea", "--", "x"], "Invalid --every"),
        (["every 1m", "--tz", "UTC", "--", "x"], "--tz is only valid"),
        (["--at", "20m", "--tz", "UTC", "--", "x"], "--tz is only valid"),
        (["--at", "tomorrow", "--", "x"], "Invalid --at"),
        (["--at", "2026-02-30", "--", "x"], "Invalid --at"),
        (["--at", "2026-03-29T02:30", "--tz", "Europe/Paris", "--", "x"], "does not exist"),
        (["--at", "2030-01-01T00:00", "--tz", "Mars/Base", "--", "x"], "no known time zone"),
        (["every 1m", "--exact", "--", "x"], "only valid for cron"),
        (["* * * * *", "--exact", "--stagger", "1m", "--", "x"], "one of --stagger and --exact"),
        (["* * * * *", "--stagger", "soon", "--", "x"], "Invalid --stagger"),
        (["every 1m", "--command-env", "A", "--", "x"], "KEY=VALUE"),
        (["every 1m", "--secret", "A=/etc/x", "--", "x"], "--secret must be"),
        (["every 1m", "--env-policy", "yes", "--", "x"], "--env-policy"),
        (["every 1m", "--overlap", "true", "--", "x"], "No such option"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    control: ScriptedRouter, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """B122 among them: an option that is not known, or has a value that is not known, is never ignored."""
    assert main(["add", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert control.requests == []


@pytest.mark.parametrize("flag", ["--message", "--announce", "--stream-command=x", "--failure-alert"])
def test_flags_of_later_releases_are_named_as_such(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert main(["add", "every 1m", flag, "--", "x"]) == 1
    assert "not supported by this release" in capsys.readouterr().err


def test_such_a_flag_of_the_program_itself_is_its_own_affair(added: Sent) -> None:
    assert added(["every 1m", "--", "mail", "--message", "hi"])["payload"] == command("mail", "--message", "hi")


@pytest.fixture
def edited(control: ScriptedRouter, query: ScriptedRouter) -> Sent:
    """Runs `edit` on a cron job with an environment and returns what it sent."""
    view = msgspec.to_builtins(job())
    view["payload"] |= {"env": {"A": "1", "B": "2"}}
    answer: Callable[[Request], list[bytes]] = lambda request: [ok(request, view)]  # noqa: E731 - for two sockets
    query.start(answer)
    control.start(answer)

    def run(arguments: list[str]) -> dict[str, object]:
        assert main(["edit", "backup", *arguments]) == 0
        return msgspec.json.decode(control.requests[-1].params, type=dict[str, object])

    return run


@pytest.mark.parametrize(
    ("arguments", "patch"),
    [
        (["--tz", "Europe/Paris"], {"schedule": {"kind": "cron", "tz": "Europe/Paris"}}),
        (["--cron", "*/5 * * * *"], {"schedule": {"kind": "cron", "expr": "*/5 * * * *"}}),
        (["--cron", "0 4 * * *"], {"schedule": {"kind": "cron", "expr": "0 4 * * *"}}),
        (["--cron", "0 4 * * *", "--exact"], {"schedule": {"kind": "cron", "expr": "0 4 * * *", "staggerMs": 0}}),
        (["--exact"], {"schedule": {"kind": "cron", "staggerMs": 0}}),
        (["--every", "5m"], {"schedule": {"kind": "every", "everyMs": 300_000}}),
        (["--command-env", "B=3"], {"payload": {"kind": "command", "env": {"A": "1", "B": "3"}}}),
        (["--", "/bin/date"], {"payload": {"kind": "command", "argv": ["/bin/date"]}}),
        (["--name", "n", "--disable", "--clear-agent"], {"name": "n", "enabled": False, "agentId": None}),
    ],
)
def test_edit_sends_only_what_changes_and_what_it_has_read(
    edited: Sent, arguments: list[str], patch: dict[str, object]
) -> None:
    sent = edited(arguments)
    assert sent.pop("requestId")
    assert sent == {"id": job().id, "patch": patch, "expectedConfigRevision": "sha256:abc"}


def test_reschedule_needs_no_other_change(edited: Sent) -> None:
    assert edited(["--reschedule"])["reschedule"] is True


def test_an_edit_without_a_change_is_refused(
    edited: Sent, control: ScriptedRouter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["edit", "backup"]) == 2
    assert "Nothing to change" in capsys.readouterr().err
    assert control.requests == []


def test_the_answer_to_add_shows_zone_and_next_run_with_offset(added: Sent, capsys: pytest.CaptureFixture[str]) -> None:
    """B055: nobody should have to guess in which zone a job is read."""
    added(["*/5 * * * *", "--", "x"])
    out = capsys.readouterr().out
    assert "(UTC)" in out
    assert "02318ddf-d1a5-44cf-8aa6-77662a1e07f3" in out
    assert "Wed 2026-12-02 04:07:35 +00:00 UTC" in out


def test_what_has_stars_is_an_expression_however_many_fields_it_has() -> None:
    """Its error is about the fields, and not about a job of that name."""
    assert repeating_fields("* * * *", None) == {"kind": "cron", "expr": "* * * *"}
    assert repeating_fields("my job", None) is None


def test_a_one_shot_that_is_over_is_told_what_it_needs() -> None:
    over = msgspec.structs.replace(job("once"), enabled=False, schedule=At("2026-01-01T00:00:00Z"))
    assert "its time is over" in added_job_text("changed", over, NOW_MS).lower()
    coming = msgspec.structs.replace(over, schedule=At("2030-01-01T00:00:00Z"))
    assert "cronward enable" in added_job_text("changed", coming, NOW_MS)


def test_usage_errors_are_click_errors() -> None:
    with pytest.raises(click.UsageError, match="has to lie ahead"):
        at_fields("0s", None, NOW_MS)
    with pytest.raises(click.UsageError, match="is no schedule"):
        from_text("soon", None, NOW_MS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2026-02-30T10:00", "Invalid schedule: names a day that the calendar does not have"),
        ("2026-12-02T25:00", "Invalid schedule: has no such time of day"),
        ("2026-12-02 10:00 CET", "Invalid schedule: is no timestamp"),
        ("5m 30x", "'5m 30x' is no schedule: use 'every 10m'"),
        ("daily", "'daily' is no schedule: use 'every 10m'"),
    ],
)
def test_a_time_that_is_wrong_says_what_is_wrong_with_it(text: str, reason: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        from_text(text, None, NOW_MS)
    assert refused.value.message.startswith(reason)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "1e300", "soon"])
def test_a_limit_is_a_number_of_seconds(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "every 1h", "--timeout-seconds", seconds, "--", "/bin/true"]) == 2
    assert "Invalid value for '--timeout-seconds'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yesterday", "Invalid --from: is no timestamp"),
        ("0000-01-01", "Invalid --from '0000-01-01': the calendar goes from the year 1 to 9999."),
        ("+012000-01-01", "Invalid --from '+012000-01-01': the calendar goes"),
    ],
)
def test_a_beginning_that_is_wrong_is_told_by_its_flag(
    text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["next", "0 5 * * *", "--tz", "UTC", "--from", text]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--retry-delays", "2s,soon"], "'2s,soon' is no list of durations"),
        (["--retry-delays", "2s,,4s"], "'2s,,4s' is no list of durations"),
        (["--backoff", "0"], "'0' is no list of durations"),
        (["--retry-on", "timeout,oops"], "'oops' is not one of rate_limit, overloaded, network, timeout, server_error"),
        (["--retry-jitter", "2"], "2.0 is not in the range 0<=x<=1"),
    ],
)
def test_lists_are_checked(flags: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "every 1h", *flags, "--", "/bin/true"]) == 2
    assert reason in capsys.readouterr().err


def test_given_and_cleared_is_refused(
    query: ScriptedRouter, control: ScriptedRouter, capsys: pytest.CaptureFixture[str]
) -> None:
    query.start(lambda request: [ok(request, job())])
    control.start(lambda request: [ok(request, job())])
    assert main(["edit", "backup", "--retry-preset", "goclaw", "--clear-retry"]) == 2
    assert "retry is given and cleared. Choose one." in capsys.readouterr().err
    assert not [request for request in control.requests if request.method == "cron.update"]


@pytest.mark.parametrize("what", ["20m", "+20m", "2030-03-01T09:00Z", "0 " * 130])
def test_next_of_what_is_neither_a_job_nor_a_schedule(
    what: str, query: ScriptedRouter, capsys: pytest.CaptureFixture[str]
) -> None:
    query.start(lambda request: [refusal(request, Code.JOB_NOT_FOUND, "cron job not found")])
    assert main(["next", what]) == 2
    assert "is neither a job nor a repeating schedule" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "cancelled", "said"),
    [
        ({"running_at_ms": NOW_MS}, False, "its run goes on, `cronward cancel` ends it"),
        ({"running_at_ms": NOW_MS}, True, "its run is asked to end"),
        ({"queued_at_ms": NOW_MS}, False, "its forced run stays queued"),
        ({}, False, "is disabled; `cronward list --all` still shows it"),
        ({}, True, "is disabled; `cronward list --all` still shows it"),
    ],
)
def test_disable_says_what_becomes_of_the_run(state: dict[str, int], cancelled: bool, said: str) -> None:
    known = msgspec.structs.replace(job().state, **state)
    view = msgspec.structs.replace(job(), enabled=False, state=known)
    assert said in switched_text(view, NOW_MS, cancelled=cancelled)
