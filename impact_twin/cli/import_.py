"""`impact-twin import`: read another tool's report as a foreign one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click

from impact_twin.canonical import MAX_BYTES
from impact_twin.cli.output import check_target, say, terminal_width, write_json, write_target
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.reading import read_file, read_standard_input
from impact_twin.text import escape


@click.command("import")
@click.argument("source", metavar="REPORT")
@click.option("--out", metavar="FILE", help="Write the foreign report; '-' is stdout.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1, 2**32),
    default=MAX_BYTES,
    show_default=True,
    help="Refuse larger files.",
)
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII only.")
@click.option("--force", is_flag=True, help="Overwrite the file named.")
def import_(source: str, *, out: str | None, max_bytes: int, plain: bool, force: bool) -> None:
    """Import a RepeatTwin v1 report or bundle of dspy-security-bench. '-' is standard input.

    Its figures are made again and compared with those it states; its outcomes stay that tool's
    claims. report, inspect and compare take the file that --out writes; no board ranks it.

    \b
    Exit code: 0 imported; 1 a digest or figure does not follow from the content; 2 usage or input.
    """  # noqa: D301 (click's mark for lines to keep)
    check_target(out, force=force, option="--out")
    from impact_twin.proofrun.foreign import import_report
    from impact_twin.proofrun.foreign_files import foreign_text
    from impact_twin.proofrun.reading import ReadLimits

    data, where = _read(source, max_bytes)
    report = import_report(data, where=where, limits=ReadLimits(max_bytes=max_bytes))
    if out is not None:
        write_target(out, foreign_text(report))
    if out == "-":
        return
    report_foreign(report, {}, plain=plain)
    if out is not None:
        say(f"Saved in {escape(out)}", sys.stderr)


def report_foreign(report: JSON, targets: Mapping[str, str], *, plain: bool) -> None:
    """Show a foreign report, as `impact-twin report` shows one of ours.

    Args:
        report: A foreign report.
        targets: Files to write, by format; `json` is the only one for foreign reports.
        plain: Draw with ASCII only.

    Raises:
        InputError: another format is asked for.
    """
    from impact_twin.proofrun.foreign_files import foreign_text
    from impact_twin.proofrun.foreign_text import render_foreign

    _refuse([f"--{name}" for name in targets if name != "json"])
    target = targets.get("json")
    if target is not None:
        write_target(target, foreign_text(report))
    if target != "-":
        text = render_foreign(report, width=terminal_width(), ascii=_ascii(plain))
        say(text.rstrip("\n"))


def inspect_foreign(
    report: JSON,
    *,
    pair: str | None,
    trial: int | None,
    trials: tuple[int, int] | None,
    as_json: bool,
    plain: bool,
    ours_only: Sequence[str] = (),
) -> None:
    """Show what varies in a foreign report, as `impact-twin inspect` does for one of ours.

    Args:
        report: A foreign report.
        pair: One pair; None for all.
        trial: One trial of it.
        trials: Two trials of it.
        as_json: Write JSON.
        plain: Draw with ASCII only.
        ours_only: Options that were given and need a report of ours.

    Raises:
        InputError: there is such an option, or no such pair or trial.
    """
    _refuse(ours_only)
    from impact_twin.proofrun.foreign_inspection import (
        foreign_inspection_json,
        render_foreign_inspection,
    )

    if as_json:
        write_json("-", foreign_inspection_json(report, pair))
        return
    text = render_foreign_inspection(
        report,
        pair=pair,
        trial=trial,
        trials=trials,
        width=terminal_width(),
        ascii=_ascii(plain),
    )
    say(text.rstrip("\n"))


def _refuse(options: Sequence[str]) -> None:
    if options:
        raise InputError(
            "it needs a report of impact-twin, and this is an imported one", where=options[0]
        )


def _ascii(plain: bool) -> bool:
    from impact_twin.report.strips import can_show

    return plain or not can_show(getattr(sys.stdout, "encoding", None))


def _read(source: str, most: int) -> tuple[bytes, str]:
    """Return a file's bytes, at most one more than allowed, and what to call it."""
    if source == "-":
        return read_standard_input(most), "standard input"
    return read_file(source, most), source
