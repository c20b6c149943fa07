"""`impact-twin report`: show a run directory or a report file again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from impact_twin.cli.exports import check_exports, export_options, take_exports, write_exports
from impact_twin.cli.show import print_report


@click.command()
@click.argument("source", metavar="REPORT")
@click.option("--suite", "folder", metavar="DIR", help="The suite's folder, when it is your own.")
@export_options
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII only.")
@click.option("--force", is_flag=True, help="Overwrite the files named.")
def report(*, source: str, folder: str | None, plain: bool, force: bool, **options: Any) -> None:
    """Show a report again. REPORT is a run directory, a report file, or '-' for standard input.

    A FILE of '-' goes to standard output, in place of the terminal report.
    """
    targets = take_exports(options)
    check_exports(targets, force=force)
    from impact_twin.proofrun.foreign_files import take_foreign
    from impact_twin.report.files import load_report

    foreign, stdin = take_foreign(source)
    if foreign is not None:
        from impact_twin.cli.import_ import report_foreign

        report_foreign(foreign, targets, plain=plain)
        return
    suite = None if folder is None else Path(folder)
    content = load_report(source, suite_folder=suite, stdin=stdin)
    write_exports(content, targets, suite)
    if "-" not in targets.values():
        print_report(content, stream=sys.stdout, plain=plain)
