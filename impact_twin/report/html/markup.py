"""Sections and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def section(key: str, title: str, *parts: str) -> str:
    """A section with its heading."""
    head = f'<h2 id="{key}-h">{title}</h2>'
    return f'<section id="{key}" aria-labelledby="{key}-h">{head}{"".join(parts)}</section>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the row.

    Args:
        caption: What it shows.
        head: Heads of the columns; one that starts with `#` is of numbers, with `~` of drawings.
        rows: Cells, safe in HTML.
    """
    kinds = [_KINDS.get(item[:1], "") for item in head]
    titles = [item.removeprefix("#").removeprefix("~") for item in head]
    top = "".join(
        f'<th scope="col"{kind}>{title}</th>' for kind, title in zip(kinds, titles, strict=True)
    )
    body = []
    for row in rows:
        cells = [f'<th scope="row">{row[0]}</th>']
        cells += [f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds[1:], row[1:], strict=True)]
        body.append(f"<tr>{''.join(cells)}</tr>")
    return wide(
        caption,
        f"<table><caption>{caption}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>",
    )


def wide(label: str, content: str) -> str:
    """Content that scrolls sideways where the page is narrow, by keyboard too."""
    return f'<div class="wide" role="region" aria-label="{label}" tabindex="0">{content}</div>'


_KINDS = {"#": ' class="n"', "~": ' class="plot"'}
