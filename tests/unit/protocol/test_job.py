"""Job definitions: what is accepted, what is refused by name, and what an edit may change."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol import job
from cronward.protocol.errors import Code, CronwardError, InvalidRequest
from cronward.protocol.launch import MESSAGE_MAX_BYTES
from cronward.protocol.patch import patch_definition

CRON: dict[str, object] = {"kind": "cron", "expr": "0 5 * * *"}
COMMAND: dict[str, object] = {"kind": "command", "argv": ["echo", "hi"]}
TEXT = st.characters(exclude_characters="\0", exclude_categories=["Cs"])


def definition(**fields: object) -> dict[str, object]:
    return {"name": "n", "schedule": CRON, "payload": COMMAND} | fields


def command(**fields: object) -> dict[str, object]:
    return definition(payload=COMMAND | fields)


def refused(raw: dict[str, object]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as raised:
        job.parse_definition(raw)
    assert raised.value.code is Code.INVALID_REQUEST
    return raised.value


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (definition(enabled="True"), "enabled"),
        (definition(enabled="yes"), "enabled"),
        (definition(schedule=CRON | {"staggerMs": "1s"}), "schedule.staggerMs"),
        (definition(schedule=CRON | {"staggerMs": "-1"}), "schedule.staggerMs"),
        (definition(schedule=CRON | {"staggerMs": "9" * 30}), "schedule.staggerMs"),
        (definition(schedule=CRON | {"staggerMs": "9" * 20}), "schedule.staggerMs"),
        (definition(enabled=1), "enabled"),
        (definition(enabled=None), "enabled"),
        (definition(deleteAfterRun="yes"), "deleteAfterRun"),
        (definition(name=7), "name"),
        (definition(description=["x"]), "description"),
        (definition(schedule="0 5 * * *"), "schedule"),
        (definition(schedule={"kind": "cron"}), "schedule.expr"),
        (definition(schedule={"kind": "cron", "expr": 5}), "schedule.expr"),
        (definition(schedule={"kind": "every", "everyMs": "1000"}), "schedule.everyMs"),
        (definition(schedule={"kind": "every", "everyMs": 0}), "schedule.everyMs"),
        (definition(schedule={"kind": "every", "everyMs": 1.5}), "schedule.everyMs"),
        (definition(schedule={"kind": "at", "at": 1_700_000_000_000}), "schedule.at"),
        (definition(schedule={"kind": "weekly"}), "schedule.kind"),
        (command(leaveChildren="true"), "payload.leaveChildren"),
        (command(timeoutSeconds="10"), "payload.timeoutSeconds"),
        (command(timeoutSeconds=-1), "payload.timeoutSeconds"),
        (command(outputMaxBytes=0), "payload.outputMaxBytes"),
        (command(argv="echo hi"), "payload.argv"),
        (command(argv=[]), "payload.argv"),
        (command(argv=["echo", 1]), "payload.argv[1]"),
        (command(argv=[""]), "payload.argv[0]"),
        (command(env={"A": 1}), "payload.env[...]"),
        (command(env={"A": None}), "payload.env[...]"),
        (command(env={"A B": "x"}), "payload.env"),
        (command(env={"CRONWARD_RUN_ID": "x"}), "payload.env"),
        (command(envPolicy="everything"), "payload.envPolicy"),
        (command(outputLimitAction="drop"), "payload.outputLimitAction"),
        (command(cwd="relative"), "payload.cwd"),
        (command(secrets={"A": {}}), "payload.secrets.A"),
        (command(secrets={"A": {"file": "/a", "env": "B"}}), "payload.secrets.A"),
        (command(secrets={"A": {"file": "a"}}), "payload.secrets.A"),
        (command(secrets={"A": {"env": "B"}}, env={"A": "x"}), "payload.secrets.A"),
        (definition(sessionTarget="main"), "sessionTarget"),
        (definition(wakeMode="later"), "wakeMode"),
        (definition(delivery={"mode": "webhook"}), "delivery.mode"),
        (definition(deleteAfterRun=True), "deleteAfterRun"),
        (definition(declarationKey="heartbeat:x"), "declarationKey"),
        (definition(declarationKey=" "), "declarationKey"),
        (definition(name=" "), "name"),
        (definition(name="a\nb"), "name"),
        (definition(name="x" * 201), "name"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(raw: dict[str, object], field: str) -> None:
    error = refused(raw)
    assert error.field == field
    assert error.message.startswith(field + ": ")


@pytest.mark.parametrize(
    "raw",
    [
        definition(overlap="true"),
        definition(schedule=CRON | {"timezone": "UTC"}),
        command(shell=True),
        definition(delivery={"mode": "none", "to": "x"}),
        definition(owner={"agent": "x"}),
        command(secrets={"A": {"vault": "x"}}),
    ],
)
def test_an_unknown_key_is_named_never_ignored(raw: dict[str, object]) -> None:
    assert "unknown field" in refused(raw).message


@pytest.mark.parametrize(
    "raw",
    [command(argv=["a\0b"]), command(env={"A": "x\0"}), command(cwd="/a\0"), command(user="root\0")],
)
def test_nul_characters_are_refused(raw: dict[str, object]) -> None:
    assert "NUL" in refused(raw).message


@pytest.mark.parametrize(
    "raw",
    [
        definition(payload={"kind": "agentTurn", "message": "x"}),
        definition(schedule={"kind": "on-exit", "command": "x"}),
    ],
)
def test_what_only_a_peer_has_is_unsupported_and_not_invalid(raw: dict[str, object]) -> None:
    with pytest.raises(CronwardError) as raised:
        job.parse_definition(raw)
    assert raised.value.code is Code.UNSUPPORTED


def test_the_size_is_bounded_and_what_is_accepted_fits_into_a_launch() -> None:
    fits = command(input="x" * (job.DEFINITION_MAX_BYTES - 1000))
    assert len(job.encode(job.parse_definition(fits))) < MESSAGE_MAX_BYTES // 2
    error = refused(command(input="x" * job.DEFINITION_MAX_BYTES))
    assert str(job.DEFINITION_MAX_BYTES) in error.message


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["echo", "hi"], "echo hi"),
        (["sh", "-lc", "\n  backup now\nmore"], "backup now"),
        (["x" * 100], "x" * 59 + "…"),
        (["a\tb\x1b[31m"], "a b [31m"),
        (["\n"], "Automation"),
    ],
)
def test_a_name_is_made_from_the_command(argv: list[str], name: str) -> None:
    raw: dict[str, object] = {"schedule": CRON, "payload": COMMAND | {"argv": argv}}
    assert job.parse_definition(raw).name == name


def test_encoding_is_canonical() -> None:
    one = job.parse_definition(command(env={"A": "1", "B": "2"}))
    other = job.parse_definition(dict(reversed(command(env={"B": "2", "A": "1"}).items())))
    assert job.encode(one) == job.encode(other)
    assert job.revision(job.encode(one)) == job.revision(job.encode(other))
    assert job.decode(job.encode(one)) == one


@given(
    st.lists(st.text(TEXT, min_size=1), min_size=1),
    st.dictionaries(st.from_regex(r"X[A-Z0-9_]{0,8}", fullmatch=True), st.text(TEXT)),
)
def test_any_text_in_arguments_and_environment_survives(argv: list[str], env: dict[str, str]) -> None:
    parsed = job.parse_definition(command(argv=argv, env=env))
    again = job.decode(job.encode(parsed))
    assert (again.payload.argv, again.payload.env) == (argv, env)


def test_a_patch_merges_within_a_kind_replaces_across_kinds_and_null_clears() -> None:
    start = job.parse_definition(definition(description="d", schedule=CRON | {"tz": "Europe/Berlin"}))
    merged = patch_definition(start, {"schedule": {"expr": "1 5 * * *"}})
    assert merged.schedule == job.Cron("1 5 * * *", tz="Europe/Berlin")
    cleared = patch_definition(start, {"schedule": {"tz": None}, "description": None})
    assert (cleared.schedule, cleared.description) == (job.Cron("0 5 * * *"), None)
    replaced = patch_definition(start, {"schedule": {"kind": "every", "everyMs": 5}})
    assert replaced.schedule == job.Every(5)
    assert patch_definition(start, {}) == start


@pytest.mark.parametrize(
    "patch",
    [{"owner": {"agentId": "x"}}, {"declarationKey": "x"}, {"name": None, "x": 1}, {"schedule": None}, {"enabled": 0}],
)
def test_a_bad_patch_is_refused(patch: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        patch_definition(job.parse_definition(definition()), patch)


@pytest.mark.parametrize("field", ["name", "schedule", "payload", "enabled", "sessionTarget", "wakeMode", "delivery"])
def test_what_a_job_cannot_do_without_is_not_cleared(field: str) -> None:
    start = job.parse_definition(definition(enabled=False))
    with pytest.raises(InvalidRequest, match=f"{field}: cannot be cleared") as refused:
        patch_definition(start, {field: None})
    assert refused.value.field == field


def test_spellings_that_scripts_for_openclaw_use() -> None:
    made = job.parse_definition(definition(enabled="false", schedule=CRON | {"staggerMs": "60000"}))
    assert (made.enabled, made.schedule) == (False, job.Cron("0 5 * * *", stagger_ms=60_000))
    patched = patch_definition(made, {"enabled": "true", "schedule": {"staggerMs": "0"}})
    assert (patched.enabled, patched.schedule) == (True, job.Cron("0 5 * * *", stagger_ms=0))


@pytest.mark.parametrize("expr", ["0 5 * * *", " 0  5\t* * * ", "0 5 * * * "])
def test_spaces_are_no_new_expression(expr: str) -> None:
    exact = job.parse_definition(definition(schedule=CRON | {"staggerMs": 7}))
    patched = patch_definition(exact, {"schedule": {"expr": expr}}).schedule
    assert isinstance(patched, job.Cron)
    assert patched.stagger_ms == 7
    other = patch_definition(exact, {"schedule": {"expr": "1 5 * * *"}}).schedule
    assert isinstance(other, job.Cron)
    assert other.stagger_ms is None


def test_another_kind_of_schedule_takes_along_what_was_said_of_one_shots() -> None:
    at: dict[str, object] = {"kind": "at", "at": "2030-01-01T00:00:00Z"}
    once = job.parse_definition(definition(schedule=at, deleteAfterRun=True))
    assert patch_definition(once, {"schedule": CRON}).delete_after_run is None
    daily = job.parse_definition(definition(deleteAfterRun=False))
    assert job.deletes_itself(patch_definition(daily, {"schedule": at}))
    assert not job.deletes_itself(patch_definition(daily, {"schedule": at, "deleteAfterRun": False}))
    assert patch_definition(once, {"schedule": {"at": "2031-01-01T00:00:00Z"}}).delete_after_run is True


def test_one_shots_delete_themselves_unless_told_otherwise() -> None:
    at: dict[str, object] = {"kind": "at", "at": "2030-01-01T00:00:00Z"}
    assert job.deletes_itself(job.parse_definition(definition(schedule=at)))
    assert not job.deletes_itself(job.parse_definition(definition(schedule=at, deleteAfterRun=False)))
    assert not job.deletes_itself(job.parse_definition(definition()))


def test_a_damaged_row_is_an_error_that_can_be_caught() -> None:
    for data in (b"", b"null", b"{", b'{"name":"n"}', b'{"name":"n","schedule":{"kind":"later"},"payload":{}}'):
        with pytest.raises(msgspec.DecodeError):
            job.decode(data)


def scheduled(**schedule: object) -> dict[str, object]:
    return definition(schedule=schedule)


@pytest.mark.parametrize(
    ("raw", "message", "allowed"),
    [
        (
            definition(schedule={"kind": "weekly"}),
            "schedule.kind: 'weekly' is not one of at, every, cron",
            "at, every, cron",
        ),
        (
            definition(retry={"preset": "fast"}),
            "retry.preset: 'fast' is not one of openclaw, goclaw",
            "openclaw, goclaw",
        ),
        (definition(retry={"transient": ["x"]}), "retry.transient[0]: 'x' is not one of rate_limit, ", None),
        (
            definition(schedule={"kind": "every", "everyMs": 0}),
            "schedule.everyMs: Expected `int` >= 1 (got 0)",
            "`int` >= 1",
        ),
        (
            definition(schedule={"kind": "every", "everyMs": 6.5}),
            "schedule.everyMs: Expected `int`, got `float`",
            "`int`",
        ),
        (
            definition(schedule={"kind": "every", "everyMs": 60_000, "tz": "UTC"}),
            "schedule.tz: unknown field `tz`",
            None,
        ),
        ({"name": "n", "payload": {"kind": "command", "argv": ["x"]}}, "schedule: is missing", None),
    ],
)
def test_a_refusal_names_field_value_and_what_is_allowed(
    raw: dict[str, object], message: str, allowed: str | None
) -> None:
    error = refused(raw)
    assert error.message.startswith(message)
    assert message.startswith(f"{error.field}: ")
    if allowed is not None:
        assert error.details["allowed"] == allowed
        assert error.details["value"]


@pytest.mark.parametrize("field", ["bogus", "state", "failureAlert"])
@pytest.mark.parametrize("value", [None, 1])
def test_a_patch_names_no_field_that_is_not_there(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=f"{field}: unknown field `{field}`"):
        patch_definition(job.parse_definition(definition()), {field: value})


@pytest.mark.parametrize("part", ["schedule", "payload", "retry", "catchUp", "pacing"])
@pytest.mark.parametrize("start", [definition(), definition(retry={"maxRetries": 1}, catchUp={"policy": "all"})])
def test_a_part_of_a_patch_names_no_field_that_is_not_there(part: str, start: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match=f"{part}.bogus: unknown field `bogus`"):
        patch_definition(job.parse_definition(start), {part: {"bogus": None}})
