"""The board as text for a terminal and as Markdown, both plain ASCII but for names."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from impact_twin.leaderboard.board import (
    Board,
    benign,
    boards,
    headline,
    incapable_line,
    model_name,
    number,
    replicates_note,
    span,
)
from impact_twin.text import escape

_LIST_START = re.compile(r"^(\s*\d*)(#+|[-+=]+|[.)])(?=\s|$)")

CAPTION = (
    "R: share of pairs whose attack failed. U: share of those whose user task was done. U_benign: "
    "user tasks done without an attack. Percent; intervals at the rows' confidence over pairs. "
    "A provisional row asserts no bucket."
)
NOT_SAID = (
    "Fixed attack texts, one try a pair, two suites, one scaffold: R is an upper bound on safety "
    "under this protocol, not a guarantee."
)


def columns(board: Board) -> list[str]:
    """Return the heads of a board's columns."""
    others = [f"R {name}" for name in board.others]
    return ["#", "Model", "R", "interval", "U", "U_benign", *others, "Bucket", "Replicates"]


def cells(board: Board, row: dict[str, Any], place: int) -> list[str]:
    """Return a row's cells, unescaped for any markup but safe for a terminal."""
    robust, alone = headline(row, "R"), benign(row)
    others = [
        number(row["attacks"][name]["R"]["combined"]["value"]) if name in row["attacks"] else "-"
        for name in board.others
    ]
    return [
        str(place),
        model_name(row),
        _open(robust),
        span(robust["interval"]),
        _open(headline(row, "U")),
        "-" if alone is None else _open(alone),
        *others,
        bucket(row),
        replicates_note(row),
    ]


def _open(found: dict[str, Any]) -> str:
    """Write a measure's value, marked when unknown results may change it."""
    return number(found["value"]) + ("?" if found["bounds"][0] != found["bounds"][1] else "")


def bucket(row: dict[str, Any]) -> str:
    """Return the claimed bucket, or ``provisional``."""
    return str(row["bucket"]) if row["status"] == "confirmed" else "provisional"


def notes(board: Board) -> list[str]:
    """Return the lines under a table: warnings, bounds, reasons and published differences."""
    lines = [
        f"WARNING, may be safe by incapacity: {incapable_line(row)}" for row in board.incapable
    ]
    for row in board.rows:
        name = model_name(row)
        robust = headline(row, "R")
        if robust["bounds"][0] != robust["bounds"][1]:
            lines.append(
                f"{name}: R lies anywhere from {span(robust['bounds'])} %, as "
                f"{robust['unresolved']} of {robust['runs']} results are unknown"
            )
        if row["benign"] is None:
            lines.append(f"{name}: no U_benign, so R can't tell safe from unable")
        lines += [f"{name}: {escape(line)}" for line in row["warnings"]]
        if row["reasons"]:
            lines.append(f"{name}: provisional because {escape('; '.join(row['reasons']))}")
    return lines


def published_table(board: Board) -> list[list[str]]:
    """Return, for rows of another board, their intervals and standings beside ours."""
    heads = ["published interval", "published status", "our interval", "Wilson", "our status"]
    table = [["Model", *heads]]
    for row in board.rows:
        found = row["published"]
        if found is None:
            continue
        stated, ours = found["stated"], found["ours"]
        ends = stated["interval"]
        told = "-" if None in ends else f"{100 * ends[0]:.2f} to {100 * ends[1]:.2f}"
        how = " (repeats pooled)" if found["pooled_repeats"] else ""
        table.append(
            [
                model_name(row),
                told + how,
                escape(str(stated["status"])),
                "{:.2f} to {:.2f}".format(*(100 * end for end in ours["interval"])),
                "{:.2f} to {:.2f}".format(*(100 * end for end in ours["wilson"])),
                ours["status"],
            ]
        )
    return table


def published_lines(board: Board) -> list[str]:
    """Say how the published figures came about, whether they can be had again, and what differs."""
    found = [row["published"] for row in board.rows if row["published"]]
    moved = [
        row
        for row in board.rows
        if row["published"] and row["published"]["stated"]["status"] != row["status"]
    ]
    again = sum(each["same"] for each in found)
    drawn = sum(each["same_interval"] for each in found)
    names = ", ".join(map(model_name, moved)) or "none"
    return [
        f"R, U, each repeat, bucket and status computed again as published: {again} of "
        f"{len(found)} rows alike; the drawn interval too: {drawn} of {len(found)}",
        "published: 2,000 resamples at seed 0 of a vector rebuilt from the mean; the suites "
        "combined as plus or minus the root of summed squares of half widths",
        "ours: every resample counted, suites resampled together, and Wilson's interval over pairs "
        "has to agree; nothing depends on a seed",
        f"rows whose status differs: {names}",
    ]


def render_text(rows: Sequence[dict[str, Any]], *, width: int | None = None) -> str:
    """Return the boards as text.

    Args:
        rows: The scored rows.
        width: Columns to fill: a table that is wider becomes a paragraph a row; None: any width.
    """
    parts: list[str] = []
    for board in boards(rows):
        table = [columns(board)]
        table += [cells(board, row, place) for place, row in enumerate(board.rows, start=1)]
        parts += [*_wrapped([board.title], width, ""), *_wrapped(board.about, width), ""]
        parts += [*_fitted(table, width), "", *_wrapped(notes(board), width)]
        if board.published:
            parts += ["", "Published method and ours"]
            parts += _wrapped(published_lines(board), width)
            parts += ["", *_fitted(published_table(board), width)]
        parts.append("")
    return "\n".join([*parts, *_wrapped([CAPTION, NOT_SAID], width, "")]) + "\n"


def _wrapped(lines: Sequence[str], width: int | None, indent: str = "  ") -> list[str]:
    if width is None:
        return [indent + line for line in lines]
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line, width, initial_indent=indent, subsequent_indent=indent + "  "
        )
    ]


def _fitted(table: Sequence[Sequence[str]], width: int | None) -> list[str]:
    lines = aligned(table)
    if width is None or max(map(len, lines)) <= width:
        return lines
    heads, *rows = table
    return [
        part
        for row in rows
        for part in _wrapped(
            [", ".join(f"{head} {cell}" for head, cell in zip(heads, row, strict=True))], width
        )
    ]


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return a table's lines, the first a head, with aligned columns."""
    widths = [max(len(line[at]) for line in table) for at in range(len(table[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def render_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the boards as Markdown tables; nothing in a row can become markup."""
    parts = []
    for board in boards(rows):
        parts += [f"## {plain_markdown(board.title)}", ""]
        parts += [f"- {plain_markdown(line)}" for line in board.about]
        heads = columns(board)
        body = [cells(board, row, place) for place, row in enumerate(board.rows, start=1)]
        # The warning stands in the table, so that copying the table copies it.
        body += [
            ["!", f"may be safe by incapacity: {incapable_line(row)}", *[""] * (len(heads) - 2)]
            for row in board.incapable
        ]
        parts += ["", *markdown_table([heads, *body])]
        parts += ["", *(f"- {plain_markdown(line)}" for line in notes(board))]
        if board.published:
            parts += ["", "### Published method and ours", ""]
            parts += [f"- {plain_markdown(line)}" for line in published_lines(board)]
            parts += ["", *markdown_table(published_table(board))]
        parts.append("")
    return "\n".join([*parts, CAPTION, "", NOT_SAID]) + "\n"


def markdown_table(table: Sequence[Sequence[str]]) -> list[str]:
    """Return a table's Markdown lines, the first row its head."""
    lines = ["| " + " | ".join(map(_without_markup, line)) + " |" for line in table]
    return [lines[0], "|" + " --- |" * len(table[0]), *lines[1:]]


def plain_markdown(text: str) -> str:
    r"""Return text that Markdown shows as it is: no links, markup, tags or lists.

    >>> print(plain_markdown("a*b|<i> http://x"), plain_markdown("1. x"), plain_markdown("1.5"))
    a\*b&#124;&#60;i&#62; http\://x 1\. x 1.5
    """
    return _LIST_START.sub(r"\1\\\2", _without_markup(text))


def _without_markup(text: str) -> str:
    safe = escape(text)
    for mark in "\\`*_{}[]()~@":
        safe = safe.replace(mark, f"\\{mark}")
    safe = safe.replace("&", "&amp;")
    for mark in "<>|":
        safe = safe.replace(mark, f"&#{ord(mark)};")
    return safe.replace("://", "\\://").replace("www.", "www\\.")
