"""`impact-twin inspect`: why a pair flips, shown by the executions themselves."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from impact_twin.cli.output import say, wants_color
from impact_twin.errors import InputError
from impact_twin.procurement.model import Twin
from impact_twin.text import escape

WIDEST = 200
CLASSES = (
    "compromised",
    "unsafe_baseline",
    "unresolved",
    "attempted",
    "incapable",
    "unexposed",
    "derailed",
    "swayed",
    "resisted",
)


@click.command("inspect")
@click.argument("source", metavar="REPORT")
@click.option("--pair", metavar="P", help="Why this pair flips: two trials side by side.")
@click.option(
    "--trials", nargs=2, type=click.IntRange(1), metavar="I J", help="These two trials of it."
)
@click.option("--trial", type=click.IntRange(1), metavar="K", help="This one trial, whole.")
@click.option(
    "--class",
    "classes",
    multiple=True,
    type=click.Choice(CLASSES),
    metavar="C",
    help="Only trials of this outcome class; may be given again.",
)
@click.option(
    "--twin",
    type=click.Choice(("clean", "poisoned")),
    help="Compare these runs.  [those that the classes hinge on]",
)
@click.option("--json", "as_json", is_flag=True, help="Write all of it as JSON, nothing clipped.")
@click.option("--suite", "folder", metavar="DIR", help="The suite's folder, when it is your own.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII only.")
def inspect(
    source: str,
    *,
    pair: str | None,
    trials: tuple[int, int] | None,
    trial: int | None,
    classes: tuple[str, ...],
    twin: Twin | None,
    as_json: bool,
    folder: str | None,
    plain: bool,
) -> None:
    """Show what varies and why. REPORT is a run directory, a report file, or '-' for stdin.

    Without --pair: the variable pairs, the most variable first, then the stable ones with what
    they may hide. With it: what its trials did, and the two that show its flip best.
    """
    from impact_twin.proofrun.foreign_files import take_foreign
    from impact_twin.report.evidence import inspect_pair, inspect_report, suite_of_report
    from impact_twin.report.evidence_json import inspection_json
    from impact_twin.report.evidence_model import Choice
    from impact_twin.report.files import load_report
    from impact_twin.report.inspection import render_inspection, render_pair

    foreign, stdin = take_foreign(source)
    if foreign is not None:
        from impact_twin.cli.import_ import inspect_foreign

        asked = {"--class": bool(classes), "--twin": twin is not None}
        inspect_foreign(
            foreign,
            pair=pair,
            trial=trial,
            trials=trials or None,
            as_json=as_json,
            plain=plain,
            ours_only=[name for name, given in asked.items() if given],
        )
        return
    choice = Choice(twin=twin, classes=classes, trials=trials or None, trial=trial)
    path = None if folder is None else Path(folder)
    report = load_report(source, suite_folder=path, stdin=stdin)
    suite = suite_of_report(report, path)
    pair = pair or _only_pair(report, trial, trials, twin)
    overview = inspect_report(report, () if pair else classes)
    names = [pair] if pair else [row.pair for row in overview.rows] if as_json else []
    found = [inspect_pair(report, name, suite, choice=choice) for name in names]
    if as_json:
        say(json.dumps(inspection_json(overview, found), ensure_ascii=True, allow_nan=False))
        return
    look = _look(plain)
    if pair:
        say(render_pair(found[0], confidence=overview.confidence, **look).rstrip("\n"))
    else:
        say(render_inspection(overview, **look).rstrip("\n"))


def _only_pair(report: dict[str, Any], *asked: object) -> str | None:
    """The pair that is meant without --pair; None when nothing was asked of a pair.

    Raises:
        InputError: the report has several.
    """
    if not any(asked):
        return None
    pairs = report["plan"]["pairs"]
    if len(pairs) == 1:
        return str(pairs[0])
    raise InputError(
        "--trial, --trials and --twin need a pair",
        where="--pair",
        mend=f"The report has {', '.join(escape(name) for name in pairs)}.",
    )


def _look(plain: bool) -> dict[str, Any]:
    """How to show it: columns on a wide terminal, lines on a narrow one and in a pipe."""
    from impact_twin.report.strips import can_show

    stream = sys.stdout
    terminal = stream is not None and stream.isatty()
    width = shutil.get_terminal_size((80, 24)).columns
    return {
        "width": min(width, WIDEST),
        "columns": terminal,
        "color": wants_color(stream),
        "ascii": plain or not can_show(getattr(stream, "encoding", None)),
    }
