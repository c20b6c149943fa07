"""The `impact-twin` command group; each command's module is imported only when it is called."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from typing import Any

import click

from impact_twin import __version__
from impact_twin.errors import ImpactTwinError
from impact_twin.text import escape

# Static helps keep `impact-twin --help` from importing any command's module.
COMMANDS: dict[str, tuple[str, str]] = {
    "repeat": ("impact_twin.cli.repeat:repeat", "Run an agent on the five pairs, many times."),
    "pairs": ("impact_twin.cli.pairs:pairs", "List, show and compare the pairs of the suite."),
    "report": ("impact_twin.cli.report:report", "Show a run or a report again."),
    "inspect": ("impact_twin.cli.inspect:inspect", "Show what varies and why it flips."),
    "compare": ("impact_twin.cli.compare:compare", "Compare reports with the first one."),
    "plan": ("impact_twin.cli.plan:plan", "Say how many trials a question needs."),
    "submit": ("impact_twin.cli.submit:submit", "Make a bundle that others can verify."),
    "verify": ("impact_twin.cli.verify:verify", "Check bundles without running a model."),
    "board": ("impact_twin.cli.board:board", "Rank the bundles of a folder that verify."),
    "import": ("impact_twin.cli.import_:import_", "Read a report of another tool."),
    "leaderboard": (
        "impact_twin.cli.leaderboard:leaderboard",
        "Run, score and show the AgentDojo base-model board.",
    ),
    "audit": (
        "impact_twin.cli.audit:audit",
        "Say which scoring rule ran and which cases were counted.",
    ),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the static one-line helps."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="impact-twin")
def cli() -> None:
    """Does an agent that meets the same poisoned document again do the same thing?"""


def main(args: list[str] | None = None) -> None:
    """Run the command line; every `ImpactTwinError` becomes one line and its exit code."""
    try:
        result: Any = cli.main(args=args, prog_name="impact-twin", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except ImpactTwinError as err:
        _say(f"Error: {escape(err.line())}")
        code = err.exit_code
    except click.exceptions.Abort:
        code = 130
    except click.exceptions.Exit as err:
        code = err.exit_code
    except click.ClickException as err:
        _say(_usage(err))
        code = 2
    except BrokenPipeError:
        code = 141  # the reader has gone; there is nobody left to tell
    _give_up_standard_output()
    sys.exit(code)


def script() -> None:
    """Run the command line as a program: nothing that an agent left behind keeps it from ending.

    At its end the interpreter waits for the threads of every thread pool, also for one that hangs.
    """
    try:
        main()
    except SystemExit as err:
        if threading.active_count() == 1 or not isinstance(err.code, int):
            raise
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
        os._exit(err.code)


def _give_up_standard_output() -> None:
    """Keep the interpreter from failing at its end on a stream that can't be written to."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(err: click.ClickException) -> str:
    message = escape(err.format_message(), keep="\n")
    if isinstance(err, click.exceptions.NoArgsIsHelpError):
        return message
    ctx = getattr(err, "ctx", None)
    hint = f"\nTry '{ctx.command_path} --help'." if ctx else ""
    return f"Error: {message}{hint}"


def _say(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        click.echo(line, err=True)


if __name__ == "__main__":
    script()
