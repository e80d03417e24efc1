"""The command line as a whole: laziness, help, errors and exit codes."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from cronward.cli.main import ALIASES, COMMANDS, cli, main
from cronward.protocol import exits
from cronward.protocol.paths import Paths
from cronward.protocol.version import VERSION
from tests.unit.cli.samples import job
from tests.unit.cli.scripted import ScriptedRouter, ok, refusal

HEAVY = (
    "msgspec",
    "zmq",
    "rich",
    "croniter",
    "asyncio",
    "importlib.metadata",
    "cronward.schedule",
    "cronward.cli.jobs",
)


def leaves() -> Iterator[tuple[str, click.Command]]:
    """Every command, those of groups too."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            for inner in command.commands.values():
                yield f"{name} {inner.name}", inner
        else:
            yield name, command


def modules_after(arguments: list[str]) -> set[str]:
    """What a process has imported once it ran `cronward` with the arguments."""
    code = "import sys; from cronward.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_nothing_but_click() -> None:
    imported = modules_after(["--help"])
    assert "click" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize("arguments", [["list", "--help"], ["status", "--help"], ["version"]])
def test_a_command_imports_neither_rich_nor_asyncio(arguments: list[str]) -> None:
    assert modules_after(arguments).isdisjoint({"rich", "croniter", "asyncio", "importlib.metadata"})


@pytest.mark.parametrize(("name", "command"), list(leaves()))
def test_every_command_has_a_help_with_an_example_of_itself(name: str, command: click.Command) -> None:
    assert command.name == name.rpartition(" ")[2]
    assert command.help is not None
    examples = [line for line in command.help.splitlines() if line.startswith("  ")]
    assert any(f"cronward {name}" in line or f" {name}" in line for line in examples)


@pytest.mark.parametrize(("name", "command"), list(leaves()))
def test_every_command_can_answer_in_json(name: str, command: click.Command) -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in options or name == "get", "get prints nothing else"


@pytest.mark.parametrize(("name", "command"), list(leaves()))
def test_examples_are_accepted_by_the_parser(name: str, command: click.Command) -> None:
    """Each example line is split as a shell would and parsed, without being run."""
    assert command.help is not None
    for line in command.help.splitlines():
        words = shlex.split(line.partition("  #")[0]) if line.startswith("  cronward ") else []
        words = words[: next((i for i, word in enumerate(words) if word in ("|", "&&", "||", ">", ";")), len(words))]
        if words[:2] == ["cronward", name.split()[0]]:
            context = click.Context(command, info_name=name)
            context.meta.clear()
            command.parse_args(context, words[1 + len(name.split()) :])


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_is_the_command(alias: str, name: str) -> None:
    context = click.Context(cli)
    assert cli.get_command(context, alias) is cli.get_command(context, name)


def test_the_list_in_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in COMMANDS)
    assert all(len(line) <= 80 for line in out.splitlines())


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cronward {VERSION}\n"


@pytest.mark.parametrize("arguments", [["frobnicate"], ["run"], ["list", "--nope"], ["runs", "--limit", "0"]])
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == exits.USAGE
    assert "Error: " in capsys.readouterr().err


def test_wrong_usage_is_one_object_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--json", "--limit", "x"]) == exits.USAGE
    error = msgspec.json.decode(capsys.readouterr().err)
    assert (error["ok"], error["code"]) == (False, "INVALID_REQUEST")


def test_a_missing_scheduler_is_one_line_that_says_how_to_start_it(
    paths: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--state", str(paths.state), "list", "--timeout", "50"]) == exits.UNREACHABLE
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"cronward --state {paths.state} up" in err


def test_a_missing_scheduler_is_one_object_with_json(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json", "--timeout", "50"]) == exits.UNREACHABLE
    captured = capsys.readouterr()
    assert captured.out == ""
    error = msgspec.json.decode(captured.err)
    assert sorted(error) == ["code", "details", "error", "ok"]
    assert (error["ok"], error["code"]) == (False, "SCHEDULER_UNREACHABLE")


def test_a_silent_scheduler_is_unreachable_too(query: ScriptedRouter) -> None:
    query.start(lambda request: [])
    assert main(["status", "--timeout", "100"]) == exits.UNREACHABLE


def test_a_refusal_is_1_and_its_text_is_harmless(query: ScriptedRouter, capsys: pytest.CaptureFixture[str]) -> None:
    query.start(lambda request: [refusal(request, "CRON_JOB_NOT_FOUND", "no \x1b[2J here")])
    assert main(["show", "x"]) == exits.ERROR
    assert capsys.readouterr().err == "cronward: no \\x1b[2J here\n"


def test_a_bad_configuration_is_78(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    Path(os.environ["CRONWARD_CONFIG"]).write_text("capacity.runs = 0\n")
    assert main(["config", "check"]) == exits.CONFIG
    assert "capacity.runs" in capsys.readouterr().err


def test_config_check_prints_value_source_and_variable(
    paths: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(os.environ["CRONWARD_CONFIG"]).write_text("default_tz = 'Europe/Paris'\n[capacity]\nruns = 3\n")
    monkeypatch.setenv("CRONWARD_RETENTION_DAYS", "2")
    assert main(["config", "check", "--json"]) == 0
    settings = {entry["key"]: entry for entry in msgspec.json.decode(capsys.readouterr().out)["settings"]}
    found = {key: (entry["value"], entry["source"]) for key, entry in settings.items()}
    assert found["default_tz"] == ("Europe/Paris", "file")
    assert found["capacity.runs"] == ("3", "file")
    assert found["retention.days"] == ("2.0", "environment")
    assert found["store_key"] == ("main", "default")
    assert settings["capacity.runs"]["variable"] == "CRONWARD_CAPACITY_RUNS"


def test_a_reader_that_leaves_is_no_error_worth_a_line(query: ScriptedRouter) -> None:
    view = msgspec.to_builtins(job(job_id="x" * 100_000))
    query.start(lambda request: [ok(request, view)])
    done = subprocess.run(
        f'{sys.executable} -c \'from cronward.cli.main import main; import sys; sys.exit(main(["get", "x"]))\' | true',
        shell=True,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""


@pytest.mark.parametrize("words", [["doctor"], ["config", "check"], ["next", "@daily"]])
def test_a_configuration_that_is_named_has_to_exist(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRONWARD_CONFIG", str(tmp_path / "missing.toml"))
    assert main(words) != 0
    captured = capsys.readouterr()
    assert "missing.toml: no such file" in captured.out + captured.err
