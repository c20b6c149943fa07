"""Tool calls in lines: one by itself, and two runs beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from impact_twin.procurement.model import JSON
from impact_twin.report.evidence_harm import describe
from impact_twin.report.evidence_model import Comparison, EventEvidence, Row
from impact_twin.report.inspection_page import Line, Page, painted
from impact_twin.report.strips import clip

ARGUMENT = 1000
"""Characters of an argument that are shown."""

OUTPUT = 600
"""Characters of an output that are shown where two runs differ."""

WHOLE = 20_000
"""Characters of any text that are shown where a trial is printed whole."""

MARKS: Mapping[str, str] = {
    "same": "=",
    "answered": "=",
    "worded": "~",
    "changed": "!",
    "left": "<",
    "right": ">",
}
LEGEND = (
    "= the same call",
    "~ in other words",
    "! the same tool, something else",
    "< only the first",
    "> only the second",
)

MOST_ALIKE = 60
"""Rows of calls that both made which are listed; beyond it the middle is left out."""


def call_line(event: EventEvidence, page: Page, width: int) -> str:
    """A call on one line: its number, tool and arguments, clipped."""
    given = event.arguments
    if isinstance(given, Mapping):
        words = ", ".join(f"{name}={_value(value)}" for name, value in list(given.items())[:20])
    else:
        words = _value(given)
    shown = page.excerpt(f"{event.tool}({words})", 4 * width)
    return clip(f"{event.seq} {shown}", width, page.ascii)


def call_block(
    event: EventEvidence, page: Page, width: int, *, argument: int = ARGUMENT, output: int = OUTPUT
) -> Iterator[Line]:
    """A call in full: arguments, output, what it changed and what that broke.

    Args:
        event: The call.
        page: Where it is shown.
        width: Columns.
        argument: Characters of each argument at most.
        output: Characters of the output at most.
    """
    yield Line(page.name(f"{event.seq} {event.tool}", width), page.paint.bold)
    given = event.arguments if isinstance(event.arguments, Mapping) else {"": event.arguments}
    for name, value in given.items():
        label = f"{name}: " if name else ""
        yield from page.text(f"{label}{_value(value)}", width, limit=argument, indent=2)
    yield from page.text(
        f"{'rejected' if event.error else 'returned'}: {event.output}",
        width,
        limit=output,
        indent=2,
        style=page.paint.doubt if event.error else page.paint.faint,
    )
    if event.served:
        yield from page.words("serves the poison", width, indent=2, style=page.paint.doubt)
    for effect in event.effects:
        yield from page.text(f"changes: {describe(effect)}", width, limit=ARGUMENT, indent=2)
    for control in event.breaks:
        yield from page.words(f"BREAKS {control}", width, indent=2, style=page.paint.bad)


def rows_lines(found: Comparison, page: Page, *, outputs: bool) -> Iterator[str]:
    """The calls of two runs, aligned; those that differ in full.

    Args:
        found: The two runs.
        page: Where they are shown.
        outputs: Whether calls that both made show the start of what they returned.
    """
    alike = [place for place, row in enumerate(found.rows) if row.kind in ("same", "answered")]
    hidden = set(alike[MOST_ALIKE // 2 : -MOST_ALIKE // 2]) if len(alike) > MOST_ALIKE else set()
    told = False
    for place, row in enumerate(found.rows):
        if place in hidden:
            if not told:
                yield f"  ... {len(hidden):,} calls that both made; --json has all"
            told = True
        elif row.kind in ("same", "answered"):
            yield from _alike(row, page, outputs=outputs)
        else:
            yield from _apart(row, page)


def _alike(row: Row, page: Page, *, outputs: bool) -> Iterator[str]:
    assert row.left is not None
    assert row.right is not None
    mark = MARKS[row.kind]
    if page.columns:
        width = page.half - 2
        left = [Line(f"{mark} {call_line(row.left, page, width)}")]
        right = [Line(f"{mark} {call_line(row.right, page, width)}")]
        if outputs:
            left.append(_output(row.left, page, width))
            right.append(_output(row.right, page, width))
        yield from page.beside(left, right)
        return
    other = "" if row.left.seq == row.right.seq else f"({row.right.seq}) "
    yield f"{mark} {other}{call_line(row.left, page, page.width - 2 - len(other))}"
    if outputs:
        yield painted(_output(row.left, page, page.width - 2))
        if row.kind == "answered":
            yield painted(_output(row.right, page, page.width - 2))


def _output(event: EventEvidence, page: Page, width: int) -> Line:
    word = "rejected" if event.error else "returned"
    text = clip(f"{word}: {page.excerpt(event.output, width)}", width - 2, page.ascii)
    return Line(f"    {text}", page.paint.faint)


def _apart(row: Row, page: Page) -> Iterator[str]:
    if not page.columns:
        for mark, event in (("<", row.left), (">", row.right)):
            if event is not None:
                sign = mark if row.left is None or row.right is None else MARKS[row.kind] + mark
                yield from _marked(sign, event, page)
        return
    mark = MARKS[row.kind]
    width = page.half - 2
    sides: list[list[Line]] = []
    for event in (row.left, row.right):
        lines = [] if event is None else list(call_block(event, page, width))
        sides.append(
            [
                Line(f"{mark if place == 0 else ' '} {line.text}", line.style)
                for place, line in enumerate(lines)
            ]
        )
    yield from page.beside(*sides)


def _marked(sign: str, event: EventEvidence, page: Page) -> Iterator[str]:
    for place, line in enumerate(call_block(event, page, page.width - 3)):
        lead = f"{sign:<3}" if place == 0 else "   "
        yield painted(Line(f"{lead}{line.text}", line.style))


def _value(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
