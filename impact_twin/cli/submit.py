"""`impact-twin submit`: put a report into a bundle that anybody can verify."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from impact_twin.cli.output import check_target, say, terminal_width, write_target
from impact_twin.errors import InputError
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.proofrun.submit import Submission


@click.command()
@click.argument("source_report", metavar="REPORT")
@click.option("--submitter", required=True, metavar="@HANDLE", help="Who submits it.")
@click.option("--source", required=True, metavar="URL", help="Where agent or run can be seen.")
@click.option("--notes", default="", metavar="TEXT", help="Anything else, in plain text.")
@click.option("--out", required=True, metavar="FILE", help="The bundle; '-' is stdout.")
@click.option("--suite", "folder", metavar="DIR", help="The suite's folder, when it is your own.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def submit(
    *,
    source_report: str,
    submitter: str,
    source: str,
    notes: str,
    out: str,
    folder: str | None,
    force: bool,
) -> None:
    """Make a bundle of a report. REPORT is a run directory, a report file, or '-'.

    The bundle is verified before it is written, as anybody else would verify it; a report that
    would not verify is refused. In GitHub Actions the run's identity is recorded as a claim.

    \b
    Exit code: 0 written; 1 the report would not verify; 2 usage or input.
    """  # noqa: D301 (click's mark for lines to keep)
    check_target(out, force=force, option="--out")
    from impact_twin.procurement.suite import bundled_suites, load_suite
    from impact_twin.proofrun.claims import ci_claims
    from impact_twin.proofrun.submit import prepare
    from impact_twin.proofrun.verify import Verifier
    from impact_twin.report.files import load_report

    own = None if folder is None else Path(folder)
    report = load_report(source_report, suite_folder=own)
    suites = bundled_suites() if own is None else (*bundled_suites(), load_suite(own))
    submission = prepare(
        report,
        Verifier(suites),
        submitter=submitter,
        source=source,
        notes=notes,
        ci=ci_claims(os.environ),
    )
    _write(out, submission.data)
    _tell(out, submission)


def _write(out: str, data: bytes) -> None:
    if out != "-":
        # Canonical JSON has no line end, so text mode can't change it.
        write_target(out, data.decode("utf-8"))
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as err:
        raise InputError(f"can't be written: {err.strerror}", where="standard output") from None


def _tell(out: str, submission: Submission) -> None:
    from impact_twin.proofrun.bundle import STATEMENT
    from impact_twin.proofrun.outcome_text import tier_lines, verification_lines
    from impact_twin.report.strips import wrap

    stream = sys.stderr if out == "-" else sys.stdout
    width = terminal_width()
    verification = submission.verification
    for line in verification_lines(out, verification, width=width):
        say(line, stream)
    say("", stream)
    for line in tier_lines([verification.tier] if verification.tier else [], width=width):
        say(line, stream)
    say("", stream)
    for line in wrap(STATEMENT, width):
        say(line, stream)
    if out != "-":
        say(f"Saved in {escape(out)}", stream)
