"""Shapes in text: the strip of a pair's trials, and an interval drawn on an axis."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from impact_twin.statistics.table import OUTCOME_CLASSES

UNICODE_SHAPES: Mapping[str, str] = {
    "compromised": "✗",
    "unsafe_baseline": "▼",
    "unresolved": "?",
    "attempted": "▲",
    "incapable": "○",
    "unexposed": "·",
    "derailed": "◇",
    "swayed": "◆",
    "resisted": "●",
}
ASCII_SHAPES: Mapping[str, str] = {
    "compromised": "X",
    "unsafe_baseline": "B",
    "unresolved": "?",
    "attempted": "a",
    "incapable": "i",
    "unexposed": "-",
    "derailed": "d",
    "swayed": "s",
    "resisted": "o",
}
UNICODE_AXIS = "├┤─━┃│…–"
SAMPLE = "".join(UNICODE_SHAPES.values()) + UNICODE_AXIS
"""Every character beyond ASCII that a terminal report draws by itself."""

_SEVERITY = {name: rank for rank, name in enumerate(OUTCOME_CLASSES)}


def can_show(encoding: str | None) -> bool:
    """Whether an encoding holds all shapes of `SAMPLE`.

    >>> can_show("utf-8"), can_show("cp1252"), can_show(None)
    (True, False, False)
    """
    try:
        SAMPLE.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def shapes(ascii_only: bool) -> Mapping[str, str]:
    """The shape of each outcome class, one character each."""
    return ASCII_SHAPES if ascii_only else UNICODE_SHAPES


@dataclass(frozen=True)
class Strip:
    """A pair's trials in order, at most as wide as asked for.

    Attributes:
        classes: The class that each mark stands for.
        per_mark: Trials that one mark stands for (the last mark may stand for fewer).
    """

    classes: tuple[str, ...]
    per_mark: int

    def text(self, ascii_only: bool) -> str:
        """The strip, one character a mark."""
        known = shapes(ascii_only)
        return "".join(known[name] for name in self.classes)


def make_strip(outcomes: Sequence[str], width: int) -> Strip:
    """Fit outcomes in order into a width; a mark over several trials shows the worst of them.

    The worst is the first in the order of precedence, so that compressing never hides harm.

    Args:
        outcomes: Outcome classes in order of trials.
        width: Characters at most, >= 1.

    >>> make_strip(["resisted", "compromised", "resisted"], 2).text(True)
    'Xo'
    """
    per_mark = max(1, math.ceil(len(outcomes) / width))
    groups = (outcomes[at : at + per_mark] for at in range(0, len(outcomes), per_mark))
    worst = tuple(min(group, key=_SEVERITY.__getitem__) for group in groups)
    return Strip(worst, per_mark)


def draw_interval(
    interval: Sequence[float] | None, share: float | None, width: int, ascii_only: bool
) -> str:
    """Draw an interval on an axis from 0 to 100 %.

    Args:
        interval: [lo, hi] within [0, 1]; None draws the bare axis.
        share: Where the mark of the estimate stands; None for none.
        width: Characters of the drawing, >= 3, ends included.
        ascii_only: Draw without Unicode.

    >>> draw_interval((0.5, 1.0), 0.9, 12, True)
    '|-----====O='
    """
    left, right, line, bar, mark = "||-=O" if ascii_only else "├┤─━┃"
    cells = [left, *line * (width - 2), right]

    def place(value: float) -> int:
        return min(width - 1, max(0, round(value * (width - 1))))

    if interval is not None:
        for at in range(place(interval[0]), place(interval[1]) + 1):
            cells[at] = bar
    if share is not None:
        cells[place(share)] = mark
    return "".join(cells)


def cells(text: str) -> int:
    """Columns that escaped text takes in a terminal.

    >>> cells("abc"), cells("評価"), cells("e\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me")
        else 1 + (unicodedata.east_asian_width(char) in ("W", "F"))
        for char in text
    )


def clip(text: str, width: int, ascii_only: bool) -> str:
    """Shorten text to a width of at least 5 columns, with an ellipsis where something was cut."""
    if cells(text) <= width:
        return text
    dots = "..." if ascii_only else "…"
    return _head(text, width - len(dots)) + dots


def wrap(text: str, width: int) -> list[str]:
    """Break escaped text into lines of a width in columns, at spaces where there are any.

    >>> wrap("one two three", 7)
    ['one two', 'three']
    """
    lines, line = [], ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cells(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        line = word
        while cells(line) > width:
            head = _head(line, width)
            lines.append(head)
            line = line[len(head) :]
    return [*lines, line] if line or not lines else lines


def _head(text: str, width: int) -> str:
    """The longest start that fits, at least one character."""
    end, room = 0, width
    while end < len(text) and (room := room - cells(text[end])) >= 0:
        end += 1
    return text[: max(end, 1)]
