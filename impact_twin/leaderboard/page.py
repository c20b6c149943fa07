"""The board as one self-contained HTML page: a table, a plot, no script, nothing from outside."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from impact_twin.leaderboard.board import Board, boards, incapable_line
from impact_twin.leaderboard.plot import plot
from impact_twin.leaderboard.render import (
    CAPTION,
    NOT_SAID,
    cells,
    columns,
    notes,
    published_lines,
    published_table,
)
from impact_twin.text import escape

_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1a1a1a; --soft: #595959;
  --line: #c9c9c9; --band: #f1f1f1; --warn: #fff2cc; --warn-ink: #4d3800; --mark: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #ececec; --soft: #b3b3b3;
  --line: #4a4d52; --band: #23262b; --warn: #3d3008; --warn-ink: #ffe6a3; --mark: #8ab8ee; } }
body { background: var(--paper); color: var(--ink); margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
.about, .small { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding-bottom: .4rem; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
  vertical-align: top; }
th[scope=row], td:last-child { overflow-wrap: anywhere; min-width: 8rem; }
figure { margin: 0; overflow-x: auto; }
tr.warning td { background: var(--warn); color: var(--warn-ink); }
svg { display: block; width: 100%; min-width: 34rem; max-width: 46rem; height: auto;
  margin: 1rem 0; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .soft { fill: var(--soft); } svg .axis { stroke: var(--soft); }
svg .grid { stroke: var(--line); }
svg .band { fill: var(--band); } svg .bar { stroke: var(--mark); stroke-width: 1.5; }
svg .sure { fill: var(--mark); stroke: var(--mark); stroke-width: 2; }
svg .unsure { fill: var(--paper); stroke: var(--mark); stroke-width: 2; }
@media print { body { max-width: none; margin: 0; } }
"""


def render_html(rows: Sequence[dict[str, Any]]) -> str:
    """Return the boards as a page that loads nothing and runs nothing."""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>Base models under prompt injection</title>",
        f"<style>{_STYLE}</style></head><body><main>",
        "<h1>Base models under prompt injection</h1>",
        f"<p>{_text(CAPTION)}</p><p>{_text(NOT_SAID)}</p>",
    ]
    for number, board in enumerate(boards(rows), start=1):
        parts.append(_board(board, number))
    parts.append("</main></body></html>")
    return "\n".join(parts) + "\n"


def _board(board: Board, number: int) -> str:
    parts = [
        f'<section aria-labelledby="board-{number}"><h2 id="board-{number}">'
        f"{_text(board.title)}</h2>",
        f'<ul class="about">{"".join(f"<li>{_text(line)}</li>" for line in board.about)}</ul>',
        plot(board, number),
        _table(board),
    ]
    found = notes(board)
    if found:
        parts.append("<h3>Notes</h3>" + _list(found))
    if board.published:
        parts.append("<h3>Published method and ours</h3>" + _list(published_lines(board)))
        heads, *body = published_table(board)
        parts.append(_plain_table("Percent; intervals of R.", heads, body))
    return "\n".join([*parts, "</section>"])


def _table(board: Board) -> str:
    heads = columns(board)
    body = [cells(board, row, place) for place, row in enumerate(board.rows, start=1)]
    warnings = [
        f'<tr class="warning"><td>!</td><td colspan="{len(heads) - 1}">'
        f"May be safe by incapacity: {_text(incapable_line(row))}</td></tr>"
        for row in board.incapable
    ]
    return _plain_table(
        "Percent, the most robust first. Numbers are those of the plot.", heads, body, warnings
    )


def _plain_table(
    caption: str, heads: Sequence[str], body: Sequence[Sequence[str]], more: Sequence[str] = ()
) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    lines = [
        "<tr>"
        + "".join(
            f'<th scope="row">{_text(cell)}</th>' if name == "Model" else f"<td>{_text(cell)}</td>"
            for name, cell in zip(heads, line, strict=True)
        )
        + "</tr>"
        for line in body
    ]
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{_text(caption)}">'
        f"<table><caption>{_text(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join([*lines, *more])}</tbody></table></div>"
    )


def _list(lines: Sequence[str]) -> str:
    return f'<ul class="small">{"".join(f"<li>{_text(line)}</li>" for line in lines)}</ul>'


def _text(text: str) -> str:
    return html.escape(escape(text))
