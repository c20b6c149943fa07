"""`impact-twin compare`: is B really better than A?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from impact_twin.cli.output import check_target, say, terminal_width, write_json
from impact_twin.errors import InputError

MOST = 26


@click.command()
@click.argument("sources", metavar="A B [C ...]", nargs=-1)
@click.option("--suite", "folder", metavar="DIR", help="The suite's folder, when it is your own.")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option("--json", "target", metavar="FILE", help="Write JSON; '-' is standard output.")
@click.option("--force", is_flag=True, help="Overwrite the JSON file.")
def compare(
    *,
    sources: tuple[str, ...],
    folder: str | None,
    confidence: float,
    target: str | None,
    force: bool,
) -> None:
    """Compare reports on the same suite with the first one, pair by pair.

    Each is a run directory, a report file, or '-' for standard input.
    """
    check_target(target, force=force, option="--json")
    if len(sources) > MOST:
        raise InputError(f"{len(sources)} reports are too many", mend=f"Name up to {MOST}.")
    if sources.count("-") > 1:
        raise InputError("standard input can be read once only", where="-")
    from impact_twin.proofrun.foreign_files import take_foreign
    from impact_twin.report.comparison import compare_reports
    from impact_twin.report.comparison_text import render_comparison
    from impact_twin.report.files import load_report

    suite = None if folder is None else Path(folder)
    taken = [(source, *take_foreign(source)) for source in sources]
    if any(foreign is not None for _, foreign, _ in taken):
        from impact_twin.proofrun.foreign_compare import compare_foreign

        result = compare_foreign([(name, foreign) for name, foreign, _ in taken], confidence)
    else:
        reports = [
            (name, load_report(name, suite_folder=suite, stdin=stdin)) for name, _, stdin in taken
        ]
        result = compare_reports(reports, confidence)
    if target is not None:
        write_json(target, result)
    if target != "-":
        say(render_comparison(result, width=terminal_width()).rstrip("\n"), sys.stdout)
