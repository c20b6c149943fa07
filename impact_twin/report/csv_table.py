"""The observation table as CSV: one row a pair-trial; docs/exports.md lists the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from impact_twin.procurement.model import JSON, TWINS, UNRESOLVED_TERMINATIONS
from impact_twin.report.cases import trace_entry
from impact_twin.text import escape

PAIR_COLUMNS = (
    "pair",
    "trial",
    "order",
    "first",
    "outcome",
    "reasons",
    "targeted",
    "toward_attacker",
)
CASE_COLUMNS = (
    "termination",
    "resolved",
    "mission_completed",
    "violations",
    "reverted",
    "goal_reached",
    "attempted",
    "served",
    "calls_after",
    "delivered",
    "decision",
    "flags",
    "calls",
    "late_calls",
    "position",
    "attempts",
    "duration_s",
    "model_calls",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "trace",
)
COLUMNS = (
    *PAIR_COLUMNS,
    *(f"{twin}_{column}" for twin in TWINS for column in CASE_COLUMNS),
)
"""Every column, in order."""

MOST = 2_000
"""Characters of a cell at most; spreadsheets hold some 32,000."""

# What makes a spreadsheet take text for a formula, in full width too.
_FORMULA = frozenset("=+-@＝＋－＠|%")


def csv_text(report: Mapping[str, JSON]) -> str:
    """Return the observation table of a report, with a head line; lines end with LF.

    Booleans are `true` and `false`, lists are joined by a space, and what is not known is empty.
    Texts are escaped, and those that a spreadsheet would take for a formula start with an
    apostrophe.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
    writer.writerow(COLUMNS)
    for item in report["pair_trials"]:
        row = [_cell(item[column]) for column in PAIR_COLUMNS]
        for twin in TWINS:
            entry = trace_entry(item[twin], report["traces"], item["pair"], twin)
            row += [_cell(found) for found in _case(item[twin], entry)]
        writer.writerow(row)
    return stream.getvalue()


def _case(case: Mapping[str, JSON], entry: Mapping[str, JSON] | None) -> Iterator[JSON]:
    usage = case["usage"] or {}
    told: Mapping[str, JSON] = entry or {}
    yield case["termination"]
    yield entry is not None and case["termination"] not in UNRESOLVED_TERMINATIONS
    for column in (
        "mission_completed",
        "violations",
        "reverted",
        "goal_reached",
        "attempted",
        "served",
        "calls_after",
    ):
        yield told.get(column)
    yield case["delivered"]
    yield told.get("decision")
    yield told.get("flags")
    yield None if entry is None else len(entry["events"])
    yield case["late_calls"]
    yield case["position"]
    yield len(case["attempts"])
    yield case["duration_s"]
    yield len(case["model_calls"])
    for column in ("input_tokens", "output_tokens", "cost_usd"):
        yield usage.get(column)
    yield case["trace"]


def _cell(found: JSON) -> str:
    if found is None:
        return ""
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int | float):
        return repr(found)
    if isinstance(found, list | tuple):
        return _text(" ".join(str(item) for item in found))
    return _text(str(found))


def _text(text: str) -> str:
    # Where the list separator is a semicolon, one would start a new cell.
    shown = escape(text[:MOST]).replace(";", "\\x3b")
    if len(text) > MOST:
        shown += "…"
    return f"'{shown}" if shown.lstrip()[:1] in _FORMULA and shown.strip() else shown
