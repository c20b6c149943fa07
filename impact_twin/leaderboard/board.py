"""Sorts rows into boards: rows stand together only if the same stimulus made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from impact_twin.canonical import digest, loads_strict, read_strict
from impact_twin.errors import InputError
from impact_twin.leaderboard import schema
from impact_twin.leaderboard.scoring import ROWS_KIND, read_sources, score
from impact_twin.text import escape


@dataclass(frozen=True)
class Board:
    """Rows that may be compared, the most robust first."""

    title: str
    about: tuple[str, ...]
    headline: str
    others: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]

    @property
    def published(self) -> bool:
        """Whether the rows are another board's, computed again."""
        return any(row["published"] for row in self.rows)

    @property
    def incapable(self) -> tuple[dict[str, Any], ...]:
        """Rows whose robustness may be lack of ability."""
        return tuple(row for row in self.rows if row["safe_by_incapacity"])


def load_rows(paths: Sequence[Path]) -> dict[str, Any]:
    """Read rows files as they are, and score run folders and published files.

    Raises:
        InputError: A file is none of these, or holds a row of another file again.
    """
    ready: list[dict[str, Any]] = []
    sources: list[Path] = []
    for path in paths:
        content = None if path.is_dir() else read_strict(path)
        if isinstance(content, dict) and content.get("kind") == ROWS_KIND:
            ready += _checked_rows(content, str(path))
        else:
            sources.append(path)
    if sources:
        ready += score(*read_sources(sources))["rows"]
    seen: set[str] = set()
    for row in ready:
        place = digest([row["model"]["id"], row["board"], row["origin"]])
        if place in seen:
            raise InputError(f"two rows of {row['model']['id']} on one board")
        seen.add(place)
    return {"kind": ROWS_KIND, "schema_version": 1, "rows": ready}


def rows_from_bytes(data: bytes, where: str) -> dict[str, Any]:
    """Read a rows file's bytes, such as standard input.

    Raises:
        InputError: They aren't a rows file.
    """
    content: dict[str, Any] = loads_strict(data, where=where)
    _checked_rows(content, where)
    return content


def _checked_rows(content: dict[str, Any], where: str) -> list[dict[str, Any]]:
    schema.check(content, "rows", where=where)
    rows: list[dict[str, Any]] = content["rows"]
    for number, row in enumerate(rows):
        if row["headline"] not in row["attacks"]:
            raise InputError(
                "its headline is not among its attacks", where=f"{where}.rows[{number}]"
            )
    return rows


def boards(rows: Sequence[dict[str, Any]]) -> list[Board]:
    """Group rows by protocol, releases, coverage, stimulus and scoring rules."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(digest([row["board"], row["headline"], row["repeats"]]), []).append(row)
    return [_board(group) for group in groups.values()]


def model_name(row: dict[str, Any]) -> str:
    """Return a row's name, safe to show."""
    return escape(row["model"]["display_name"] or row["model"]["id"])


def headline(row: dict[str, Any], table: str) -> dict[str, Any]:
    """Return a combined measure of the headline attack: ``R``, ``U`` or ``exposed``."""
    found: dict[str, Any] = row["attacks"][row["headline"]][table]["combined"]
    return found


def benign(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the combined benign utility, if it was measured."""
    return None if row["benign"] is None else row["benign"]["combined"]


def replicates_note(row: dict[str, Any]) -> str:
    """Say in a few words what the repeats showed."""
    found = row["replicates"]
    if found["pairs"] is None:
        return (
            f"same R in {found['cells_same_security']}/{found['cells']} cells, same U in "
            f"{found['cells_same_utility']}/{found['cells']}; cache {found['cache']}"
        )
    note = f"identical pairs {found['pairs_identical']}/{found['pairs']}; {found['label']}"
    if found["response_ids_repeated"]:
        note += f"; {found['response_ids_repeated']} response ids again"
    return escape(note)


def incapable_line(row: dict[str, Any]) -> str:
    """Say why a row's robustness is no praise."""
    alone = benign(row)
    useful, what = (
        (headline(row, "U"), "user tasks done under attack")
        if alone is None or alone["value"] is None
        else (alone, "user tasks done without an attack")
    )
    return (
        f"{model_name(row)} has R {share(headline(row, 'R')['value'])} with only "
        f"{share(useful['value'])} of {what}"
    )


def _repeats_line(rows: Sequence[dict[str, Any]]) -> str:
    found = [row["replicates"] for row in rows]
    cells = sum(each["cells"] for each in found)
    utility = sum(each["cells_same_utility"] for each in found)
    security = sum(each["cells_same_security"] for each in found)
    return (
        f"all repeats of a cell alike: utility in {utility} of {cells} cells, security in "
        f"{security} of {cells}"
    )


def share(value: float | None) -> str:
    """Write a share in percent with one decimal.

    >>> share(0.9933), share(None)
    ('99.3 %', 'unknown')
    """
    return "unknown" if value is None else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Write a share in percent without the sign, for a column whose head has it."""
    return "-" if value is None else f"{100 * value:.1f}"


def span(ends: Sequence[float]) -> str:
    """Write an interval of shares in percent."""
    return f"{number(ends[0])} to {number(ends[1])}"


def _board(rows: list[dict[str, Any]]) -> Board:
    first = rows[0]
    about = first["board"]
    attacks = {name: None for row in rows for name in row["attacks"]}
    rules = {escape(suite): escape(found) for suite, found in about["rules"].items()}
    lines = [
        f"AgentDojo {about['agentdojo']}, benchmark {about['benchmark']}; dspy {about['dspy']}",
        f"{'every user task' if about['coverage'] == 'full' else 'the pinned user tasks'} x every "
        f"injection task of the protocol; k = {first['repeats']} repeats",
        f"protocol digest {about['protocol_digest']}",
        f"scoring rules: {', '.join(f'{s} {d}' for s, d in rules.items()) or 'not recorded'}",
        _repeats_line(rows),
    ]
    ordered = sorted(rows, key=lambda row: (-(headline(row, "R")["value"] or -1), model_name(row)))
    coverage = " (full coverage)" if about["coverage"] == "full" else ""
    return Board(
        title=escape(f"{about['protocol']}{coverage}"),
        about=tuple(escape(line) for line in lines),
        headline=first["headline"],
        others=tuple(escape(name) for name in attacks if name != first["headline"]),
        rows=tuple(ordered),
    )
