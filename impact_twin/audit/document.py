"""A small document of headings, paragraphs and tables, shown as plain text or as one HTML page.

All strings in a document are untrusted: both renderers escape every one of them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from impact_twin.text import escape

WIDTH = 80


@dataclass(frozen=True)
class Table:
    """A table; the first column names its row.

    Attributes:
        caption: What the rows are.
        columns: Column names; one that begins with ">" is aligned to the right.
        rows: Cells, as many a row as there are columns.
        most: How many rows the terminal shows; the page shows all.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    most: int = 1_000_000


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs and tables, in this order, and closing notes."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    page_only: bool = False


@dataclass(frozen=True)
class Document:
    """What a command has to say."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...] = field(default=())


def to_text(document: Document, width: int = WIDTH) -> str:
    """Return a document as plain text of at most `width` columns."""
    lines = [*_wrap(document.title, width), ""]
    for paragraph in document.lead:
        lines += _wrap(paragraph, width)
    for section in document.sections:
        if section.page_only:
            continue
        lines += ["", *_wrap(section.heading, width), "-" * min(width, len(section.heading))]
        for paragraph in section.paragraphs:
            lines += _wrap(paragraph, width)
        for table in section.tables:
            lines += ["", *_table_lines(table, width)]
        if section.notes:
            lines.append("")
        for note in section.notes:
            lines += _wrap(note, width)
    return "\n".join(line.rstrip() for line in lines)


def _wrap(text: str, width: int) -> list[str]:
    """Break text at blanks, or else after a joint of a long name, or else anywhere."""
    lines: list[str] = []
    rest = escape(text).strip()
    while len(rest) > width:
        cut = rest.rfind(" ", 1, width + 1)
        if cut < width // 2:
            # A long name after a short word: better to break the name than to waste the line.
            joints = [match.end() for match in re.finditer(r"[_./:,-]", rest[:width])]
            cut = max([cut, *joints]) if joints or cut > 0 else width
        lines.append(rest[:cut].rstrip(" "))
        rest = rest[cut:].lstrip(" ")
    return [*lines, rest]


def _table_lines(table: Table, width: int) -> list[str]:
    names = [column.removeprefix(">") for column in table.columns]
    right = [column.startswith(">") for column in table.columns]
    shown = table.rows[: table.most]
    cells = [names, *[[escape(cell) for cell in row] for row in shown]]
    widths = _widths(cells, width - 2 * (len(names) - 1))
    lines = _wrap(table.caption, width)
    for index, row in enumerate(cells):
        lines += _row_lines(row, widths, right)
        if index == 0:
            lines.append("  ".join("-" * size for size in widths))
    if len(table.rows) > len(shown):
        lines += _wrap(f"... and {len(table.rows) - len(shown)} more (--json, --html)", width)
    return lines


def _row_lines(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    wrapped = [_wrap(cell, size) for cell, size in zip(row, widths, strict=True)]
    for number in range(max(map(len, wrapped))):
        parts = []
        for lines, size, is_right in zip(wrapped, widths, right, strict=True):
            text = lines[number] if number < len(lines) else ""
            parts.append(text.rjust(size) if is_right else text.ljust(size))
        yield "  ".join(parts)


def _widths(cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Give each column what it needs; where that is too much, take from the widest."""
    widths = [max(1, *(len(row[index]) for row in cells)) for index in range(len(cells[0]))]
    while sum(widths) > room and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    return widths


def grouped(number: int) -> str:
    """Return a number with thousands set off.

    >>> grouped(7400)
    '7,400'
    """
    return f"{number:,}"


def many(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural but for one.

    >>> many(1, "record"), many(7400, "record")
    ('1 record', '7,400 records')
    """
    return f"{grouped(number)} {noun}" + ("" if number == 1 else "s")


STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --faint: #57606a;
  --line: #d0d7de; --band: #f6f8fa; --link: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117;
  --faint: #9198a1; --line: #3d444d; --band: #151b23; --link: #79c0ff; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; padding: 1.5rem; max-width: 76rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
p { max-width: 46rem; } .note { color: var(--faint); }
.scroll { overflow-x: auto; margin: 1rem 0; } .scroll:focus { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: .9rem; overflow-wrap: normal; }
caption { text-align: left; color: var(--faint); padding-bottom: .4rem; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left;
  vertical-align: top; }
thead th { background: var(--band); } tbody th { font-weight: normal; }
.right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
"""


def to_html(document: Document) -> str:
    """Return a document as one self-contained page without scripts or links to elsewhere."""
    body = [f"<h1>{_safe(document.title)}</h1>"]
    body += [f"<p>{_safe(paragraph)}</p>" for paragraph in document.lead]
    for number, section in enumerate(document.sections):
        body.append(f'<section aria-labelledby="s{number}">')
        body.append(f'<h2 id="s{number}">{_safe(section.heading)}</h2>')
        body += [f"<p>{_safe(paragraph)}</p>" for paragraph in section.paragraphs]
        for table in section.tables:
            body += _table_html(table)
        body += [f'<p class="note">{_safe(note)}</p>' for note in section.notes]
        body.append("</section>")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_safe(document.title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
    ]
    return "\n".join([*head, *body, "</main>", "</body>", "</html>"]) + "\n"


def _table_html(table: Table) -> Iterator[str]:
    classes = [' class="right"' if column.startswith(">") else "" for column in table.columns]
    label = _safe(table.caption)
    yield f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table>'
    yield f"<caption>{label}</caption><thead><tr>"
    for column, kind in zip(table.columns, classes, strict=True):
        yield f'<th scope="col"{kind}>{_safe(column.removeprefix(">"))}</th>'
    yield "</tr></thead><tbody>"
    for row in table.rows:
        first, *others = [f"{kind}>{_safe(cell)}" for cell, kind in zip(row, classes, strict=True)]
        cells = "".join(f"<td{cell}</td>" for cell in others)
        yield f'<tr><th scope="row"{first}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _safe(text: str) -> str:
    return html.escape(escape(text))
