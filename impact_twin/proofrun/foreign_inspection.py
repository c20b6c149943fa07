"""Why a pair of a foreign report flips: its outcomes, its traces, and two trials side by side."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.foreign import first_parting
from impact_twin.proofrun.foreign_figures import outcome_of
from impact_twin.proofrun.foreign_text import (
    case_words,
    head_lines,
    legend,
    outcome_words,
    pair_lines,
    paragraph,
)
from impact_twin.text import escape

_EVENTS = 12
_ARGUMENTS = 300
_ANSWER = 600
_CLUSTERS = 20

Row = Mapping[str, JSON]


def render_foreign_inspection(
    report: Mapping[str, JSON],
    *,
    pair: str | None = None,
    trial: int | None = None,
    trials: tuple[int, int] | None = None,
    width: int = 80,
    ascii: bool = False,
) -> str:
    """Return what varies in a foreign report, as text ending with a newline.

    Args:
        report: A foreign report.
        pair: One pair; None shows all, the most variable first.
        trial: This trial of the pair, whole.
        trials: These two trials of the pair; otherwise those that show its flip.
        width: Columns to keep to, >= 40.
        ascii: Draw with ASCII only.

    Raises:
        InputError: there is no such pair or trial, or a trial is named without a pair.
    """
    if pair is None:
        if trial is not None or trials is not None:
            raise InputError("a trial needs a pair", where="--pair")
        lines = _overview(report, width, ascii)
    else:
        rows = _rows(report, pair)
        if trial is not None:
            lines = _whole(report, _row(rows, trial), width)
        else:
            chosen = _flip(rows) if trials is None else [_row(rows, item) for item in trials]
            lines = _pair(report, rows, chosen, width, ascii)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def foreign_inspection_json(report: Mapping[str, JSON], pair: str | None = None) -> JSON:
    """Return what varies as JSON; texts are as the file has them.

    Raises:
        InputError: there is no such pair.
    """
    names = [item["pair"] for item in report["summary"]["pairs"]] if pair is None else [pair]
    return {
        "kind": "impact-twin/foreign-inspection",
        "schema_version": 1,
        "statement": report["statement"],
        "origin": report["origin"],
        "identity": report["identity"],
        "notes": report["notes"],
        "pairs": [_pair_json(report, name) for name in names],
    }


def _pair_json(report: Mapping[str, JSON], name: str) -> JSON:
    rows = _rows(report, name)
    used = {row[twin]["trace"] for row in rows for twin in ("clean", "poisoned")}
    return {
        "summary": next(item for item in report["summary"]["pairs"] if item["pair"] == name),
        "clusters": [
            {"outcome": outcome, "trace": trace, "trials": [row["trial"] for row in same]}
            for (outcome, trace), same in _clusters(rows)
        ],
        "shown": [row["trial"] for row in _flip(rows)],
        "pair_trials": [{**row, "outcome": outcome_of(row)} for row in rows],
        "traces": {key: report["traces"][key] for key in sorted(used)},
    }


def _overview(report: Mapping[str, JSON], width: int, ascii_only: bool) -> Iterator[str]:
    yield from head_lines(report, width)
    yield ""
    # Variable pairs first, the most variable of them before the others.
    order = sorted(
        report["summary"]["pairs"],
        key=lambda item: (item["label"] != "variable", -(item["disagreement"] or 0.0)),
    )
    for item in order:
        yield from pair_lines(report, item, width, ascii_only)
    yield ""
    yield from paragraph(legend(ascii_only), width)


def _pair(
    report: Mapping[str, JSON],
    rows: Sequence[Row],
    chosen: Sequence[Row],
    width: int,
    ascii_only: bool,
) -> Iterator[str]:
    yield from paragraph(report["statement"], width, "! ")
    name = rows[0]["pair"]
    item = next(item for item in report["summary"]["pairs"] if item["pair"] == name)
    yield from pair_lines(report, item, width, ascii_only)
    yield ""
    clusters = _clusters(rows)
    yield "Trials by outcome and poisoned trace"
    for (outcome, trace), same in clusters[:_CLUSTERS]:
        yield from paragraph(
            f"{len(same)} x {outcome}, trace {trace[:15]}, for example trial {same[0]['trial']}",
            width,
            "  ",
        )
    if len(clusters) > _CLUSTERS:
        yield f"  and {len(clusters) - _CLUSTERS} more"
    for row in chosen:
        yield ""
        yield from paragraph(f"Trial {row['trial']}: {outcome_words(row)}", width)
        for twin in ("clean", "poisoned"):
            yield from paragraph(f"{twin}: {case_words(row[twin])}", width, "  ")
    if len(chosen) == 2:
        yield ""
        yield from _parting(report, chosen, width)


def _parting(report: Mapping[str, JSON], chosen: Sequence[Row], width: int) -> Iterator[str]:
    one, other = (report["traces"][row["poisoned"]["trace"]] for row in chosen)
    place = first_parting(one, other)
    if place is None:
        yield from paragraph("The poisoned runs of both made the same calls.", width)
        return
    yield f"The poisoned runs part at call {place + 1}"
    for row, trace in zip(chosen, (one, other), strict=True):
        yield f"  trial {row['trial']}"
        yield from _events(trace, place, place + _EVENTS, width)


def _whole(report: Mapping[str, JSON], row: Row, width: int) -> Iterator[str]:
    yield from paragraph(report["statement"], width, "! ")
    yield from paragraph(f"{row['pair']}, trial {row['trial']}: {outcome_words(row)}", width)
    for twin in ("clean", "poisoned"):
        case = row[twin]
        trace = report["traces"][case["trace"]]
        yield ""
        yield from paragraph(f"{twin}: {case_words(case)}", width)
        yield from _events(trace, 0, len(trace), width)
        answer = case["answer"]
        more = "" if len(answer) <= _ANSWER else f" ({len(answer)} characters; --json has all)"
        yield from paragraph(f"answer: {answer[:_ANSWER]}{more}", width, "  ")


def _events(trace: Sequence[JSON], first: int, last: int, width: int) -> Iterator[str]:
    if first >= len(trace):
        yield "    no further call"
    for place, event in enumerate(trace[first:last], first + 1):
        text = json.dumps(event["arguments"], ensure_ascii=False)
        more = "" if len(text) <= _ARGUMENTS else f"... ({len(text)} characters)"
        yield from paragraph(f"{place} {event['tool']} {text[:_ARGUMENTS]}{more}", width, "    ")
    if last < len(trace):
        yield f"    and {len(trace) - last} more calls"


def _clusters(rows: Sequence[Row]) -> list[tuple[tuple[str, str], list[Row]]]:
    """Trials with the same outcome and poisoned trace, the largest group first."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[outcome_of(row), row["poisoned"]["trace"]].append(row)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def _flip(rows: Sequence[Row]) -> list[Row]:
    """The first trials of the two commonest outcomes; one when there is one outcome only."""
    common = Counter(outcome_of(row) for row in rows).most_common(2)
    return [next(row for row in rows if outcome_of(row) == outcome) for outcome, _ in common]


def _rows(report: Mapping[str, JSON], pair: str) -> list[Row]:
    rows = [row for row in report["pair_trials"] if row["pair"] == pair]
    if not rows:
        known = ", ".join(escape(item["pair"]) for item in report["pairs"])
        raise InputError(
            f"there is no pair {escape(pair)!r}", where="--pair", mend=f"The report has {known}."
        )
    return rows


def _row(rows: Sequence[Row], trial: int) -> Row:
    if not 1 <= trial <= len(rows):
        raise InputError(
            f"there is no trial {trial}", where="--trial", mend=f"The report has 1 to {len(rows)}."
        )
    return rows[trial - 1]
