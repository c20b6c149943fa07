"""`impact-twin board`: verify a folder of bundles and rank those that may be ranked."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from impact_twin.cli.output import (
    check_apart,
    check_target,
    say,
    terminal_width,
    wants_color,
    write_json,
    write_target,
)
from impact_twin.text import escape


@click.command()
@click.argument("folder", metavar="FOLDER")
@click.option("--html", "page", metavar="FILE", help="Write a self-contained page.")
@click.option("--markdown", metavar="FILE", help="Write Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Write the board as JSON to stdout.")
@click.option("--expect", metavar="FILE", help="What you expect of attestations, as JSON.")
@click.option("--trusted-root", metavar="FILE", help="Another Sigstore trusted root than ours.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII only.")
@click.option("--force", is_flag=True, help="Overwrite the files named.")
def board(
    *,
    folder: str,
    page: str | None,
    markdown: str | None,
    as_json: bool,
    expect: str | None,
    trusted_root: str | None,
    plain: bool,
    force: bool,
) -> None:
    """Verify every bundle in FOLDER and rank those that may be ranked.

    Beside x.json, x.sigstore.json attests the bundle and x.plan.sigstore.json its plan. They are
    compared with what --expect says, never with what a bundle says of itself.

    Without --html, --markdown or --json the board is shown here.

    \b
    Exit code: 0 the board was made, whatever it holds; 2 usage or input.
    """  # noqa: D301 (click's mark for lines to keep)
    check_target(page, force=force, option="--html")
    check_target(markdown, force=force, option="--markdown")
    check_apart({"--html": page, "--markdown": markdown, "--json": "-" if as_json else None})
    from impact_twin.procurement.suite import bundled_suites
    from impact_twin.proofrun.board_files import board_of_folder, read_expected
    from impact_twin.proofrun.verify import Verifier

    expected = read_expected(_path(expect), _path(trusted_root))
    found = board_of_folder(Path(folder), Verifier(bundled_suites()), expected)
    if page is not None:
        from impact_twin.proofrun.board_page import board_page

        _write(page, board_page(found))
    if markdown is not None:
        from impact_twin.proofrun.board_markdown import board_markdown

        _write(markdown, board_markdown(found))
    if as_json:
        from impact_twin.proofrun.board_words import board_json

        write_json("-", board_json(found))
    elif page is None and markdown is None:
        _show(found, plain=plain)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def _write(target: str, text: str) -> None:
    write_target(target, text)
    if target != "-":
        say(f"Saved in {escape(target)}", sys.stderr)


def _show(found: object, *, plain: bool) -> None:
    from impact_twin.proofrun.board import Board
    from impact_twin.proofrun.board_text import render_board
    from impact_twin.report.strips import can_show

    assert isinstance(found, Board)
    stream = sys.stdout
    text = render_board(
        found,
        width=terminal_width(),
        color=wants_color(stream),
        ascii=plain or not can_show(getattr(stream, "encoding", None)),
    )
    say(text.rstrip("\n"))
