"""The flags that describe a job, shared by `add` and `edit`, and how a command is read from them."""

import os
from collections.abc import Callable
from typing import TypedDict, TypeVar

import click
import msgspec

from cronward.cli.values import Delays, Duration, Names, Seconds
from cronward.protocol.errors import Code, CronwardError
from cronward.protocol.job import SECONDS_MAX
from cronward.schedule.retry import Failure

F = TypeVar("F", bound=Callable[..., object])

NOT_IN_THIS_RELEASE = frozenset(
    """--on-exit --on-exit-cwd --stream-command --stream-cwd --stream-mode --stream-match
    --stream-batch-ms --stream-max-batch-bytes --trigger-script --trigger-once --system-event
    --message --script --script-timeout-seconds --script-tool-budget --model --fallbacks --thinking --light-context
    --tools --announce --deliver --webhook --channel --to --thread-id --account --best-effort-deliver
    --no-light-context --no-best-effort-deliver --failure-alert --no-failure-alert --failure-alert-after
    --failure-alert-channel --failure-alert-to --failure-alert-cooldown --failure-alert-mode
    --clear-trigger --clear-thinking --clear-fallbacks --clear-model --clear-tools --clear-channel
    --clear-to --clear-thread-id --clear-account""".split()  # noqa: SIM905 - sixty quoted words are no easier to read
)
"""Flags of OpenClaw's cron that need agents, channels or triggers."""

_ARGV = "cronward.argv"


class JobFlags(TypedDict):
    """What click gives for the options of `job_options`. None, empty and False mean: not given."""

    name: str | None
    display_name: str | None
    description: str | None
    delete_after_run: bool | None
    agent: str | None
    session_key: str | None
    session_target: str | None
    wake: str | None
    no_deliver: bool
    at: str | None
    every: str | None
    cron: str | None
    tz: str | None
    stagger: str | None
    exact: bool
    command: str | None
    command_argv: str | None
    command_cwd: str | None
    command_env: tuple[str, ...]
    command_input: str | None
    timeout_seconds: float | None
    no_output_timeout_seconds: float | None
    output_max_bytes: int | None
    user: str | None
    secret: tuple[str, ...]
    env_policy: str | None
    output_limit_action: str | None
    leave_children: bool | None
    catch_up: str | None
    catch_up_max_age: int | None
    catch_up_max_runs: int | None
    retry_preset: str | None
    retry_delays: list[float] | None
    retry_jitter: float | None
    retry_on: list[str] | None
    backoff: list[float] | None
    max_retries: int | None
    disable_after: int | None
    pacing_min: int | None
    pacing_max: int | None


TRANSIENT = [str(failure) for failure in Failure if failure is not Failure.PERMANENT]
_SECONDS = Seconds(min=0, max=SECONDS_MAX)
_OPTIONS = [
    click.option("--name", help="Name of the job; by default taken from its command."),
    click.option("--display-name", help="A title for people."),
    click.option("--description", help="What the job is for."),
    click.option(
        "--delete-after-run/--keep-after-run",
        default=None,
        help="Whether a one-shot is removed once it went well (it is, unless told otherwise).",
    ),
    click.option("--agent", metavar="ID", help="Agent that the job belongs to."),
    click.option("--session-key", metavar="KEY", help="Session that the job belongs to."),
    click.option(
        "--session",
        "session_target",
        type=click.Choice(["isolated"]),
        help="Where it runs: always in a process of its own.",
    ),
    click.option("--wake", type=click.Choice(["now"]), help="When it starts once it is due: always now."),
    click.option("--no-deliver", is_flag=True, help="Deliver the result nowhere, as always in this release."),
    click.option("--at", metavar="TIME", help="Once: ISO 8601 (UTC without offset or --tz), or 20m from now."),
    click.option("--every", metavar="DURATION", help="At an interval: 30s, 10m, 1h30m."),
    click.option("--cron", metavar="EXPR", help="By a cron expression of 5, 6 or 7 fields, or @daily."),
    click.option("--tz", metavar="ZONE", help="Zone of --cron or of an --at without offset, e.g. Europe/Paris."),
    click.option("--stagger", metavar="DURATION", help="Spread the slots of a cron job by up to this much."),
    click.option("--exact", is_flag=True, help="No stagger: exactly at the slot."),
    click.option("--command", metavar="SHELL", help="Run this with sh -lc."),
    click.option("--command-argv", metavar="JSON", help="Run this program: a JSON array of strings."),
    click.option("--command-cwd", metavar="DIR", help="Directory to run in."),
    click.option("--command-env", metavar="K=V", multiple=True, help="An environment variable (repeat)."),
    click.option("--command-input", metavar="TEXT", help="Text for standard input."),
    click.option("--timeout-seconds", type=_SECONDS, help="End it after this long; 0: never."),
    click.option("--no-output-timeout-seconds", type=_SECONDS, help="End it if it is silent this long; 0: never."),
    click.option("--output-max-bytes", type=click.IntRange(min=1), help="How much is kept of each output stream."),
    click.option("--user", metavar="NAME", help="Run as this user (where the launcher is root)."),
    click.option(
        "--secret",
        metavar="NAME=SOURCE",
        multiple=True,
        help="A variable whose value comes from file:/path, env:VAR or credential:NAME (repeat).",
    ),
    click.option(
        "--env-policy",
        type=click.Choice(["minimal", "inherit"]),
        help="Which variables of the service the command gets: a few, or all but Cronward's own.",
    ),
    click.option(
        "--output-limit-action",
        type=click.Choice(["truncate", "fail"]),
        help="What happens at --output-max-bytes.",
    ),
    click.option(
        "--leave-children/--end-children",
        default=None,
        help="Whether processes that the command leaves behind live on (they are ended, unless told otherwise).",
    ),
    click.option(
        "--catch-up",
        type=click.Choice(["latest", "none", "all"]),
        help="Which missed slots are run late, after the service was down: the last one, none, or each.",
    ),
    click.option("--catch-up-max-age", type=Duration(), help="Leave out missed slots that are older; 0: any age."),
    click.option("--catch-up-max-runs", type=click.IntRange(1, 1000), help="At most so many of them, with all."),
    click.option(
        "--retry-preset",
        type=click.Choice(["openclaw", "goclaw"]),
        help="Quick retries of errors that may pass: after 30 s, 1 min, 5 min, or after 2, 4, 8 s.",
    ),
    click.option("--max-retries", type=click.IntRange(0, 1000), help="How many quick retries in a row."),
    click.option(
        "--retry-delays", type=Delays(), metavar="LIST", help="After how long, e.g. 2s,4s,8s; the last one repeats."
    ),
    click.option("--retry-jitter", type=click.FloatRange(0, 1), help="By which share of it at random, either way."),
    click.option(
        "--retry-on",
        type=Names(*TRANSIENT),
        metavar="LIST",
        help=f"Classes of errors that may pass: {', '.join(TRANSIENT)}.",
    ),
    click.option(
        "--backoff", type=Delays(), metavar="LIST", help="The least time after the 1st, 2nd, … failure: 30s,1m,5m."
    ),
    click.option("--disable-after", type=click.IntRange(min=0), help="Disable it after so many failures; 0: never."),
    click.option("--pacing-min", type=Duration(), help="A run may propose the next check, at the earliest after this."),
    click.option("--pacing-max", type=Duration(), help="A run may propose the next check, at the latest after this."),
]


def job_options(function: F) -> F:
    """Adds every option of JobFlags."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


class JobCommand(click.Command):
    """A command that takes a program and its arguments after `--`, and knows the flags that are still to come."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, argv = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, None)
        for arg in own:
            flag = arg.partition("=")[0]
            if flag in NOT_IN_THIS_RELEASE:
                message = f"{flag} is not supported by this release, which runs commands: use --command or -- PROGRAM"
                raise CronwardError(Code.UNSUPPORTED, message, flag=flag)
        ctx.meta[_ARGV] = argv
        return super().parse_args(ctx, own)


def program_after_dashes() -> list[str] | None:
    """What followed `--` on the command line of a JobCommand."""
    argv: list[str] | None = click.get_current_context().meta.get(_ARGV)
    return argv


def command_argv(flags: JobFlags, positional: str | None, after_dashes: list[str] | None) -> list[str] | None:
    """The one command that was given, or None. A program such as ./x is found here and now, since the job will run
    somewhere else."""
    given: list[list[str]] = []
    if after_dashes is not None:
        given.append(_located(after_dashes, flags["command_cwd"]))
    if flags["command_argv"] is not None:
        given.append(_argv_from_json(flags["command_argv"]))
    given += [["sh", "-lc", text] for text in (flags["command"], positional) if text is not None]
    if len(given) > 1:
        raise click.UsageError("Choose exactly one command: --command, --command-argv, or -- PROGRAM ARGS.")
    return given[0] if given else None


def _located(argv: list[str], cwd: str | None) -> list[str]:
    if not argv:
        raise click.UsageError("There is no program after `--`.")
    program = argv[0]
    relative = "/" in program and not program.startswith("/")
    return [os.path.abspath(program), *argv[1:]] if relative and cwd is None else argv


def _argv_from_json(text: str) -> list[str]:
    try:
        argv = msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        argv = []
    if not argv:
        raise click.UsageError('--command-argv must be a JSON array of strings, e.g. \'["echo","hi"]\'.')
    return argv


def payload_fields(flags: JobFlags) -> dict[str, object]:
    """The payload's JSON fields that the flags give, without argv."""
    fields: dict[str, object] = {
        "cwd": None if flags["command_cwd"] is None else os.path.abspath(flags["command_cwd"]),
        "env": _environment(flags["command_env"]) or None,
        "secrets": _secrets(flags["secret"]) or None,
        "envPolicy": flags["env_policy"],
        "input": flags["command_input"],
        "timeoutSeconds": flags["timeout_seconds"],
        "noOutputTimeoutSeconds": flags["no_output_timeout_seconds"],
        "outputMaxBytes": flags["output_max_bytes"],
        "outputLimitAction": flags["output_limit_action"],
        "user": flags["user"],
        "leaveChildren": flags["leave_children"],
    }
    return {key: value for key, value in fields.items() if value is not None}


def definition_fields(flags: JobFlags) -> dict[str, object]:
    """The definition's JSON fields that the flags give, without schedule and payload."""
    fields: dict[str, object] = {
        "name": flags["name"],
        "displayName": flags["display_name"],
        "description": flags["description"],
        "deleteAfterRun": flags["delete_after_run"],
        "agentId": flags["agent"],
        "sessionKey": flags["session_key"],
        "sessionTarget": flags["session_target"],
        "wakeMode": flags["wake"],
        "delivery": {"mode": "none"} if flags["no_deliver"] else None,
    }
    return {key: value for key, value in (fields | _rule_fields(flags)).items() if value is not None}


def _rule_fields(flags: JobFlags) -> dict[str, object]:
    """Retries, catch-up and pacing; what no flag names is left to the job or the configuration."""
    age_ms = flags["catch_up_max_age"]
    groups: dict[str, dict[str, object]] = {
        "catchUp": {
            "policy": flags["catch_up"],
            "maxRuns": flags["catch_up_max_runs"],
            "maxAgeSeconds": None if age_ms is None else age_ms / 1000,
        },
        "retry": {
            "preset": flags["retry_preset"],
            "delaysSeconds": flags["retry_delays"],
            "jitter": flags["retry_jitter"],
            "transient": flags["retry_on"],
            "backoffSeconds": flags["backoff"],
            "maxRetries": flags["max_retries"],
            "disableAfter": flags["disable_after"],
        },
        "pacing": {"min": flags["pacing_min"], "max": flags["pacing_max"]},
    }
    given = {name: {key: value for key, value in group.items() if value is not None} for name, group in groups.items()}
    return {name: group for name, group in given.items() if group}


def _environment(pairs: tuple[str, ...]) -> dict[str, str]:
    variables = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--command-env must be KEY=VALUE (got {pair!r}).")
        variables[name] = value
    return variables


def _secrets(pairs: tuple[str, ...]) -> dict[str, dict[str, str]]:
    secrets = {}
    for pair in pairs:
        name, _, source = pair.partition("=")
        kind, _, place = source.partition(":")
        if not name or kind not in ("file", "env", "credential") or not place:
            raise click.UsageError("--secret must be NAME=file:/path, NAME=env:VARIABLE or NAME=credential:NAME.")
        secrets[name] = {kind: place}
    return secrets
