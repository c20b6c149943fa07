"""The board for a terminal of at most 80 columns. Text from files is escaped here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from impact_twin.procurement.model import JSON
from impact_twin.proofrun import board_words as words
from impact_twin.proofrun.board import Board, Row, SuiteBoard
from impact_twin.proofrun.board_entry import RATES, Facts
from impact_twin.report.html.words import class_words
from impact_twin.report.paint import Paint
from impact_twin.report.strips import clip, draw_interval, shapes, wrap
from impact_twin.statistics.table import OUTCOME_CLASSES
from impact_twin.text import escape

_LABEL = 18
_BAR = 40
_NARROWEST, _WIDEST = 16, 32
_LONGEST = 1_000


def render_board(board: Board, *, width: int = 80, color: bool = False, ascii: bool = False) -> str:
    """Return the board as text, ending with a newline.

    Args:
        board: The board.
        width: Columns to keep to, >= 40.
        color: Whether to colour classes; shapes tell them apart as well.
        ascii: Draw with ASCII only.
    """
    lines = _Lines(width, Paint(color), ascii)
    return "\n".join(line.rstrip() for line in lines.board(board)) + "\n"


def class_bar(classes: Mapping[str, int], width: int) -> list[tuple[str, int]]:
    """Share a bar between the classes that occurred, each having one cell at least.

    Args:
        classes: Counts by class.
        width: Cells, at least as many as there are classes.

    Returns:
        (class, cells) in the order of precedence; the cells add up to `width`, or nothing when no
        class occurred.

    >>> class_bar({"resisted": 199, "compromised": 1}, 10)
    [('compromised', 1), ('resisted', 9)]
    """
    found = [(name, classes[name]) for name in OUTCOME_CLASSES if classes.get(name)]
    total = sum(count for _, count in found)
    cells = {name: max(1, count * width // total) for name, count in found}
    while found and sum(cells.values()) != width:
        step = 1 if sum(cells.values()) < width else -1

        def lacks(item: tuple[str, int], step: int = step) -> float:
            """How far the exact share lies beyond the cells, in the direction of the step."""
            share = item[1] * width / total - cells[item[0]]
            return step * share if step > 0 or cells[item[0]] > 1 else float("-inf")

        cells[max(found, key=lacks)[0]] += step
    return [(name, cells[name]) for name, _ in found]


class _Lines:
    """Makes lines of one look."""

    def __init__(self, width: int, paint: Paint, ascii_only: bool) -> None:
        self._width = width
        self._paint = paint
        self._ascii = ascii_only

    def board(self, board: Board) -> Iterator[str]:
        yield self._paint.bold(words.TITLE)
        if not board.boards:
            yield words.NOTHING
        for found in board.boards:
            yield ""
            yield from self._suite(found)
        if board.refused:
            yield ""
            yield self._paint.bold("Refused")
            for entry in board.refused:
                yield from self._item(f"{entry.name}: {entry.problem}")
        if board.repositories:
            yield ""
            yield self._paint.bold("Repositories")
            for repository in board.repositories:
                yield from self._item(words.repository(repository))
        yield ""
        for note in board.notes:
            yield from self._item(note, "! ")
        for text in words.LIMITS:
            yield from wrap(text, self._width)

    def _suite(self, board: SuiteBoard) -> Iterator[str]:
        yield from wrap(self._safe(words.suite_line(board)), self._width)
        if not board.rows:
            yield words.NOBODY
        for row in board.rows:
            yield ""
            yield from self._row(row, board)
        if board.rows:
            yield ""
            yield from wrap(words.multiplicity(board), self._width)
        for note in board.notes:
            yield from self._item(note, "! ")
        if board.unranked:
            yield ""
            yield self._paint.bold("Not ranked")
        for item in board.unranked:
            yield from self._item(f"{item.entry.name}: {self._who(item.facts)}")
            for reason in item.reasons:
                yield from self._item(reason.text, "  - ")

    def _row(self, row: Row, board: SuiteBoard) -> Iterator[str]:
        facts = row.facts
        head = clip(self._safe(self._who(facts)), self._width - 5, self._ascii)
        yield f"{row.rank:>3}  {self._paint.bold(head)}"
        yield from self._labelled("file", row.entry.name)
        yield from self._labelled("tier", f"{facts.tier}; {words.size(facts)}")
        for name in RATES:
            yield from self._rate(name, facts.rates[name])
        yield from self._classes(facts)
        yield from self._labelled("pairs", words.labels(facts))
        yield from self._labelled("rows", words.alike(row, board.rows))
        for missing in facts.missing:
            yield from self._labelled("no higher tier", missing)

    def _rate(self, name: str, rate: Mapping[str, JSON]) -> Iterator[str]:
        interval, count, n = rate["wilson"], rate["count"], rate["n"]
        unknown = f"+{rate['unresolved']}?" if rate["unresolved"] else ""
        ends = "withheld" if interval is None else "-".join(f"{100 * end:.1f}" for end in interval)
        figures = f"{ends} % {count}{unknown}/{n}"
        share = None if rate["unresolved"] else rate["rate"]
        label = name.replace("_", " ")
        room = self._width - 5 - _LABEL
        beside = room - len(figures) - 1
        if beside < _NARROWEST:
            yield f"     {label:<{_LABEL}}{draw_interval(interval, share, room, self._ascii)}"
            yield f"     {'':<{_LABEL}}{figures}"
        else:
            drawn = draw_interval(interval, share, min(beside, _WIDEST), self._ascii)
            yield f"     {label:<{_LABEL}}{drawn} {figures}"

    def _classes(self, facts: Facts) -> Iterator[str]:
        known = shapes(self._ascii)
        width = min(_BAR, self._width - 5 - _LABEL)
        bar = "".join(
            self._paint.outcome(name, known[name] * cells)
            for name, cells in class_bar(facts.classes, width)
        )
        yield f"     {'classes':<{_LABEL}}{bar}"
        key = ", ".join(
            f"{known[name]} {facts.classes[name]} {name}"
            for name in OUTCOME_CLASSES
            if facts.classes[name]
        )
        yield from self._labelled("", key or class_words(facts.classes))

    def _who(self, facts: Facts) -> str:
        return f"{facts.agent} by {facts.submitter}"

    def _labelled(self, label: str, text: str) -> Iterator[str]:
        for line in wrap(self._safe(text), self._width - 5 - _LABEL):
            yield f"     {label:<{_LABEL}}{line}"
            label = ""

    def _item(self, text: str, mark: str = "  ") -> Iterator[str]:
        for line in wrap(self._safe(text), self._width - len(mark)):
            yield f"{mark}{line}"
            mark = " " * len(mark)

    def _safe(self, text: str) -> str:
        return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
