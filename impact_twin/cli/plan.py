"""`impact-twin plan`: how many trials does my question need?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from impact_twin.cli.output import check_target, say, terminal_width, write_json
from impact_twin.errors import InputError


@click.command()
@click.option("--half-width", type=float, metavar="H", help="An interval of +- H.")
@click.option("--rate", type=float, default=0.5, show_default=True, help="... at this rate.")
@click.option("--gate", metavar="EXPR", help="To pass a gate, as repeat --gate takes it.")
@click.option("--failures", type=int, default=0, show_default=True, help="... so many against.")
@click.option("--flip-rate", type=float, metavar="P", help="To certify other outcomes below P.")
@click.option("--deviations", type=int, default=0, show_default=True, help="... so many seen.")
@click.option("--apart", type=float, nargs=2, metavar="A B", help="To tell two rates apart.")
@click.option("--power", type=float, default=0.8, show_default=True, help="... with this power.")
@click.option("--pairs", type=int, help="Pairs of the suite.  [the pilot's, or 5]")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option("--pilot", metavar="REPORT", help="Estimate time and cost from this report.")
@click.option("--suite", "folder", metavar="DIR", help="The pilot's suite, when it is your own.")
@click.option("--concurrency", type=int, default=4, show_default=True, help="For the time.")
@click.option("--json", "target", metavar="FILE", help="Write JSON; '-' is standard output.")
@click.option("--force", is_flag=True, help="Overwrite the JSON file.")
def plan(
    *,
    pairs: int | None,
    pilot: str | None,
    folder: str | None,
    concurrency: int,
    target: str | None,
    force: bool,
    **asked: Any,
) -> None:
    """Say how many trials a question needs, and what they would take by a pilot report."""
    check_target(target, force=force, option="--json")
    if concurrency < 1:
        raise InputError("below 1", where="--concurrency")
    if not 0 < asked["confidence"] < 1:
        raise InputError("not in (0, 1)", where="--confidence", mend="Try 0.95.")
    from impact_twin.report.files import load_report
    from impact_twin.report.planning import Questions, plan_trials, render_plan

    report = None
    if pilot is not None:
        report = load_report(pilot, suite_folder=None if folder is None else Path(folder))
    if pairs is None:
        pairs = 5 if report is None else len(report["plan"]["pairs"])
    result = plan_trials(Questions(pairs=pairs, **asked), report)
    if target is not None:
        write_json(target, result)
    if target != "-":
        say(render_plan(result, concurrency, width=terminal_width()).rstrip("\n"), sys.stdout)
