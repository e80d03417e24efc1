"""The command `cronward`: which commands there are, and what becomes of their errors.

A command's module is imported only when that command runs: `cronward --help` needs nothing but click.
"""

import sys
from importlib import import_module
from typing import NamedTuple

import click

from cronward.protocol import version


class Options(NamedTuple):
    """The global options as given; whoever needs a directory or a configuration resolves them."""

    state: str | None
    runtime: str | None
    config: str | None


class Entry(NamedTuple):
    """Where a command lives (`cronward.cli.<module>`, attribute) and what it does, for the list in --help."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "up": Entry("up", "up", "Run scheduler and launcher in the foreground."),
    "add": Entry("add", "add", "Create a job."),
    "list": Entry("jobs", "list_jobs", "List jobs with their next run."),
    "get": Entry("jobs", "get", "Print a job as JSON."),
    "show": Entry("jobs", "show", "Describe a job and its coming slots."),
    "edit": Entry("edit", "edit", "Change a job."),
    "enable": Entry("jobs", "enable", "Let a job's schedule run again."),
    "disable": Entry("jobs", "disable", "Stop a job's schedule."),
    "rm": Entry("jobs", "remove", "Remove a job."),
    "run": Entry("run", "run", "Run a job now."),
    "runs": Entry("runs", "runs", "List runs."),
    "logs": Entry("logs", "logs", "Print or follow a run's output."),
    "cancel": Entry("runs", "cancel", "End a run."),
    "drain": Entry("service", "drain", "Start nothing more and wait until nothing runs."),
    "pause": Entry("service", "pause_service", "Start nothing more until resumed."),
    "resume": Entry("service", "resume", "Start runs again."),
    "status": Entry("service", "status", "Show what the service does."),
    "watch": Entry("watch", "watch", "Follow events as they happen."),
    "next": Entry("preview", "next_slots", "Show the coming slots of an expression or a job."),
    "why": Entry("why", "why", "Say what became of a slot, and why."),
    "doctor": Entry("doctor", "doctor", "Check the installation and the running service."),
    "config": Entry("configuration", "config", "Check the configuration."),
    "backup": Entry("backup", "backup", "Write a verified copy of the database."),
    "restore": Entry("backup", "restore", "Put a backup in place of the database."),
    "failpoints": Entry("failpoints", "list_failpoints", "List the points where a crash can be injected."),
    "torture": Entry("torture", "torture", "Crash an installation of its own and check the promises."),
    "version": Entry("failpoints", "show_version", "Print the release."),
}

ALIASES = {"create": "add", "remove": "rm", "delete": "rm"}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        command: click.Command = getattr(import_module(f"cronward.cli.{entry.module}"), entry.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Aliases: create = add, remove and delete = rm. `cronward COMMAND --help` shows examples.",
)
@click.option("--state", metavar="DIR", help="State directory (CRONWARD_STATE_DIR).")
@click.option("--runtime", metavar="DIR", help="Directory of the sockets (CRONWARD_RUNTIME_DIR).")
@click.option("--config", metavar="FILE", help="Configuration file (CRONWARD_CONFIG).")
@click.version_option(version.VERSION, message="cronward %(version)s")
@click.pass_context
def cli(ctx: click.Context, state: str | None, runtime: str | None, config: str | None) -> None:
    """Cronward runs jobs at their times, and never loses or repeats one.

    \b
      cronward up                                       run the service here
      cronward add 'every 10m' --name hi -- echo hi     create a job
      cronward list                                     see when it runs next
      cronward logs hi                                  see what it said
    """
    ctx.obj = Options(state, runtime, config)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that `arguments` name and returns its exit code (protocol/exits.py)."""
    args = sys.argv[1:] if arguments is None else arguments
    try:
        result = cli.main(args, prog_name="cronward", standalone_mode=False)
    except Exception as error:
        from cronward.cli import failure

        return failure.report(error, as_json=_wants_json(args))
    return result if isinstance(result, int) else 0


def _wants_json(args: list[str]) -> bool:
    own = args[: args.index("--")] if "--" in args else args
    return "--json" in own
