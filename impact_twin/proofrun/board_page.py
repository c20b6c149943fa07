"""The board as one self-contained page: no script, nothing from outside. No text is markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from impact_twin.proofrun import board_words as words
from impact_twin.proofrun.board import Board, Row, SuiteBoard
from impact_twin.proofrun.board_entry import RATES
from impact_twin.report.html import charts
from impact_twin.report.html.markup import section, table
from impact_twin.report.html.style import STYLE
from impact_twin.report.html.words import class_words, ends, estimate, line, name

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What the page may load: its own style sheet."""

_TEXT = 1_000
_HEADS = (
    "Rank and agent",
    *(f"~{rate.replace('_', ' ')}" for rate in RATES),
    "~Classes",
    "Not told apart from",
)
_MORE = """
.plot { width: auto; min-width: 11rem; } tbody th .soft { font-weight: 400; }
th:last-child, td:last-child { min-width: 9rem; } td ul { margin: 0; padding-left: 1.2rem; }
"""


def board_page(board: Board) -> str:
    """Return the board as a page, ending with a newline."""
    parts = [f"<h1>{words.TITLE}</h1>"]
    parts += [f'<p class="soft">{line(text, _TEXT)}</p>' for text in words.LIMITS]
    parts += [_warning(text) for text in board.notes]
    if not board.boards:
        parts.append(f"<p>{words.NOTHING}</p>")
    parts += [_suite(found, place) for place, found in enumerate(board.boards, 1)]
    if board.refused:
        rows = [(name(entry.name), name(entry.problem, _TEXT)) for entry in board.refused]
        parts.append(
            section("refused", "Refused", table("Files that don't hold", ("File", "Why"), rows))
        )
    if board.repositories:
        items = [words.repository(found) for found in board.repositories]
        parts.append(section("repositories", "Repositories", _list(items)))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{words.TITLE}</title><style>{STYLE}{_MORE}</style></head>\n"
        f"<body>{charts.symbols()}<main>\n" + "\n".join(parts) + "\n</main></body></html>\n"
    )


def _suite(board: SuiteBoard, place: int) -> str:
    parts = [f'<p class="soft">{line(words.suite_line(board), _TEXT)}</p>']
    if board.rows:
        totals = {
            key: sum(row.facts.classes[key] for row in board.rows)
            for key in board.rows[0].facts.classes
        }
        parts.append(charts.legend(totals))
        parts.append(
            table(
                "Ranked, the best first: 95 % intervals from 0 to 100 %",
                _HEADS,
                [_row(row, board.rows) for row in board.rows],
            )
        )
        parts.append(f'<p class="soft">{line(words.multiplicity(board), _TEXT)}</p>')
    else:
        parts.append(f"<p>{words.NOBODY}</p>")
    parts += [_warning(text) for text in board.notes]
    if board.unranked:
        parts.append(
            table(
                "Verified, but not ranked",
                ("Agent", "File", "Why"),
                list(_unranked(board)),
            )
        )
    return section(f"board-{place}", name(board.suite), *parts)


def _row(row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    facts = row.facts
    agent = (
        f"{row.rank}. {name(facts.agent, 80)}<br>"
        f'<span class="soft">by {name(facts.submitter, 80)}, {name(row.entry.name, 80)}<br>'
        f"{line(facts.tier)}; {line(words.size(facts))}"
        f"{''.join(f'<br>no higher tier: {name(text, _TEXT)}' for text in facts.missing)}</span>"
    )
    plots = []
    for rate in RATES:
        found = facts.rates[rate]
        title = rate.replace("_", " ")
        plots.append(
            f"{charts.interval(found, 'wilson', title)}"
            f'<span class="soft">{estimate(found)} ({ends(found["wilson"])})</span>'
        )
    bar = (
        f'{charts.bar(facts.classes, "Classes")}<span class="soft">{class_words(facts.classes)}'
        f"; pairs: {words.labels(facts)}</span>"
    )
    return (agent, *plots, bar, _alike(row, rows))


def _alike(row: Row, rows: Sequence[Row]) -> str:
    if not row.alike:
        return line(words.alike(row, rows))
    return ", ".join(
        f"{rows[place - 1].rank} ({name(rows[place - 1].entry.name, 80)})" for place in row.alike
    )


def _unranked(board: SuiteBoard) -> Iterator[tuple[str, ...]]:
    for item in board.unranked:
        facts = item.facts
        yield (
            f'{name(facts.agent, 80)}<br><span class="soft">by {name(facts.submitter, 80)}</span>',
            name(item.entry.name),
            _list([reason.text for reason in item.reasons]),
        )


def _warning(text: str) -> str:
    return f'<p class="warning">{name(text, _TEXT)}</p>'


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{name(text, _TEXT)}</li>' for text in items)}</ul>"
