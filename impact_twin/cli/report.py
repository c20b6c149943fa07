"""`impact-twin report`: show a run directory or a report file again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from impact_twin.cli.output import check_target
from impact_twin.cli.show import print_report, write_report_to

suite_option = click.option(
    "--suite", "folder", metavar="DIR", help="The suite's folder, when it is your own."
)


@click.command()
@click.argument("source", metavar="REPORT")
@suite_option
@click.option("--json", "target", metavar="FILE", help="Write the report here; '-' is stdout.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII only.")
@click.option("--force", is_flag=True, help="Overwrite the files named.")
def report(source: str, folder: str | None, target: str | None, plain: bool, force: bool) -> None:
    """Show a report again. REPORT is a run directory, a report file, or '-' for standard input."""
    check_target(target, force=force, option="--json")
    from impact_twin.report.files import load_report

    content = load_report(source, suite_folder=None if folder is None else Path(folder))
    if target is not None:
        write_report_to(target, content)
    if target != "-":
        print_report(content, stream=sys.stdout, plain=plain)
