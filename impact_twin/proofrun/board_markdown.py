"""The board as Markdown, for a pull request or a README. No text from a file is markup."""

from __future__ import annotations

from collections.abc import Iterator

from impact_twin.proofrun import board_words as words
from impact_twin.proofrun.board import Board, Row, SuiteBoard
from impact_twin.proofrun.board_entry import RATES
from impact_twin.proofrun.board_text import class_bar
from impact_twin.report.html.words import class_words, ends, estimate
from impact_twin.report.markdown import code, prose
from impact_twin.report.strips import UNICODE_SHAPES
from impact_twin.statistics.table import OUTCOME_CLASSES

_BAR = 12


def board_markdown(board: Board) -> str:
    """Return the board as Markdown, ending with a newline."""
    return "\n\n".join(_parts(board)) + "\n"


def _parts(board: Board) -> Iterator[str]:
    yield f"## {words.TITLE}"
    for note in board.notes:
        yield f"> {prose(note)}"
    if not board.boards:
        yield words.NOTHING
    for found in board.boards:
        yield from _suite(found)
    if board.refused:
        yield "### Refused"
        yield "\n".join(f"- {code(entry.name)}: {prose(entry.problem)}" for entry in board.refused)
    if board.repositories:
        yield "### Repositories"
        yield "\n".join(f"- {prose(words.repository(found))}" for found in board.repositories)
    yield from words.LIMITS


def _suite(board: SuiteBoard) -> Iterator[str]:
    yield f"### {code(board.suite)}"
    yield prose(words.suite_line(board))
    if board.rows:
        heads = ["rank", "agent", *(rate.replace("_", " ") for rate in RATES)]
        heads += ["classes", "pairs", "n", "tier", "not told apart from"]
        lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
        lines += [f"| {' | '.join(_row(row, board))} |" for row in board.rows]
        yield "\n".join(lines)
        seen = [
            f"{UNICODE_SHAPES[name]} {name}"
            for name in OUTCOME_CLASSES
            if any(row.facts.classes[name] for row in board.rows)
        ]
        yield f"{', '.join(seen)}. Brackets: 95 % Wilson intervals."
        yield prose(words.multiplicity(board))
    else:
        yield words.NOBODY
    for note in board.notes:
        yield f"> {prose(note)}"
    if board.unranked:
        yield "#### Not ranked"
        yield "\n".join(
            f"- {code(item.entry.name)}: {code(item.facts.agent)} by {code(item.facts.submitter)}. "
            + prose(words.reasons([reason.text for reason in item.reasons]))
            for item in board.unranked
        )


def _row(row: Row, board: SuiteBoard) -> list[str]:
    facts = row.facts
    bar = "".join(UNICODE_SHAPES[name] * cells for name, cells in class_bar(facts.classes, _BAR))
    rates = [facts.rates[rate] for rate in RATES]
    if row.alike:
        alike = ", ".join(
            f"{board.rows[place - 1].rank} ({code(board.rows[place - 1].entry.name)})"
            for place in row.alike
        )
    else:
        alike = words.alike(row, board.rows)
    return [
        str(row.rank),
        f"{code(facts.agent)} by {code(facts.submitter)}, {code(row.entry.name)}",
        *(f"{estimate(rate)} [{ends(rate['wilson'])}]" for rate in rates),
        f"{bar} {class_words(facts.classes)}",
        words.labels(facts),
        str(facts.n),
        facts.tier,
        alike,
    ]
