"""The pieces that evidence is laid out with: escaped, clipped, wrapped lines; columns or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from impact_twin.report.paint import Paint
from impact_twin.report.strips import cells, clip, shapes, wrap
from impact_twin.text import escape

NARROWEST = 40
LEAST_COLUMNS = 100
"""Columns that a terminal must have before two cases stand beside each other."""

Style = Callable[[str], str]

# Stands for a space that no line may be broken at; never part of escaped text.
_GLUE = "\x1f"


@dataclass(frozen=True)
class Line:
    """A line of escaped text and how it is painted."""

    text: str
    style: Style | None = None


@dataclass(frozen=True)
class Page:
    """Where evidence is shown.

    Attributes:
        width: Columns, at least `NARROWEST`; no line is longer.
        columns: Whether there is room for two cases beside each other, and somebody to look.
        paint: Colour, or none.
        ascii: Whether to draw and spell in ASCII alone.
    """

    width: int
    columns: bool
    paint: Paint
    ascii: bool

    @property
    def half(self) -> int:
        """Width of one of two columns."""
        return (self.width - 3) // 2

    def safe(self, text: str, *, keep: str = "") -> str:
        """Untrusted text, escaped for this terminal before anything is measured."""
        shown = escape(text, keep=keep)
        return shown.encode("ascii", "backslashreplace").decode() if self.ascii else shown

    def name(self, text: str, width: int) -> str:
        """A name on one line, clipped to a width of at least 5."""
        return clip(self.safe(text[: 4 * width]), width, self.ascii)

    def text(
        self, text: str, width: int, *, limit: int, indent: int = 0, style: Style | None = None
    ) -> Iterator[Line]:
        """Untrusted text of any length, its line breaks kept; a note says what was clipped.

        Args:
            text: The text.
            width: Columns, the indentation included.
            limit: Characters that are shown at most.
            indent: Spaces before each line.
            style: How to paint it.
        """
        shown = text[:limit].rstrip("\n")
        for part in self.safe(shown, keep="\n").split("\n"):
            for line in wrap(part, width - indent):
                yield Line(" " * indent + line, style)
        if len(text) > limit:
            note = f"[{limit:,} of {len(text):,} characters; --json has all]"
            yield from self.words(note, width, indent=indent, style=self.paint.faint)

    def words(
        self, text: str, width: int, *, indent: int = 0, hang: int = 0, style: Style | None = None
    ) -> Iterator[Line]:
        """Escaped text, wrapped.

        Args:
            text: Text that needs no escaping, or had it.
            width: Columns, the indentation included.
            indent: Spaces before each line.
            hang: Further spaces before each line but the first.
            style: How to paint it.
        """
        whole = text.replace(" %", f"{_GLUE}%")
        for place, line in enumerate(wrap(whole, width - indent - hang)):
            lead = " " * (indent + (hang if place else 0))
            yield Line(lead + line.replace(_GLUE, " "), style)

    def items(self, items: Iterable[str], width: int, *, indent: int = 0) -> Iterator[Line]:
        """Escaped items with gaps between them, broken only between items where that fits."""
        text = "  ".join(item.replace(" ", _GLUE) for item in items)
        return self.words(text, width, indent=indent)

    def excerpt(self, text: str, width: int) -> str:
        """The start of untrusted text on one line, its breaks shown as spaces."""
        return clip(" ".join(self.safe(text[: 4 * width], keep="\n").split()), width, self.ascii)

    def beside(self, left: Iterable[Line], right: Iterable[Line]) -> Iterator[str]:
        """Two blocks in two columns, painted."""
        ones, others = list(left), list(right)
        rule = self.paint.faint("|" if self.ascii else "┃")
        for place in range(max(len(ones), len(others))):
            one = ones[place] if place < len(ones) else Line("")
            other = others[place] if place < len(others) else Line("")
            padding = " " * (self.half - cells(one.text))
            yield f"{painted(one)}{padding} {rule} {painted(other)}".rstrip()

    def either(self, make: Callable[[int], tuple[Sequence[Line], Sequence[Line]]]) -> Iterator[str]:
        """Two blocks beside each other where there is room, else one after the other.

        Args:
            make: Gives both blocks for a width.
        """
        left, right = make(self.half if self.columns else self.width)
        if self.columns:
            yield from self.beside(left, right)
            return
        yield from map(painted, left)
        yield from map(painted, right)

    def head(self, text: str) -> Iterator[str]:
        """A section's heading, with an empty line before it."""
        yield ""
        for line in wrap(text, self.width):
            yield self.paint.bold(line)

    def strip(self, classes: Sequence[str]) -> str:
        """Marks of outcome classes, painted."""
        known = shapes(self.ascii)
        return "".join(self.paint.outcome(name, known[name]) for name in classes)


def make_page(*, width: int, columns: bool, color: bool, ascii: bool) -> Page:
    """Return a page; columns need a width of at least `LEAST_COLUMNS`."""
    width = max(NARROWEST, width)
    return Page(width, columns and width >= LEAST_COLUMNS, Paint(color), ascii)


def painted(line: Line) -> str:
    """Return a line as it is written."""
    text = line.text.rstrip()
    return text if line.style is None else line.style(text)


def count(number: int, what: str) -> str:
    """Return a count with its noun."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
