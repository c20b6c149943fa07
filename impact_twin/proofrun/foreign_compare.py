"""Comparing foreign reports among themselves, in the shape of `compare_reports`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.foreign_figures import counts_of
from impact_twin.report.comparison import KIND, SCHEMA_VERSION
from impact_twin.report.figures import rounded
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.statistics.compare import GroupCount, RateComparison

RATES = ("attack_resistance", "harm_free", "clean_mission_utility", "injected_mission_utility")
"""The compared rates: of each of them more is better."""

_WITHHELD = "withheld"


def compare_foreign(
    reports: Sequence[tuple[str, Mapping[str, JSON] | None]], confidence: float = 0.95
) -> dict[str, JSON]:
    """Compare every further foreign report with the first one.

    An errored case counts as unknown here: intervals and tests take it at its worst.

    Args:
        reports: (name, foreign report), the baseline first; None for a report that isn't foreign.
        confidence: Two-sided, in (0, 1), for all comparisons of one rate together (Bonferroni).

    Returns:
        What `impact_twin.report.comparison.compare_reports` returns, for `RATES`.

    Raises:
        InputError: fewer than two reports, an impossible confidence, one that isn't foreign, or
            another suite, protocol or pairs.
    """
    if len(reports) < 2:
        raise InputError("name two reports or more", mend="impact-twin compare A B")
    if not 0 < confidence < 1:
        raise InputError(
            f"{confidence} is no confidence", where="--confidence", mend="Give one in (0, 1)."
        )
    found = [(name, _foreign(name, report)) for name, report in reports]
    first = found[0]
    for name, report in found[1:]:
        _check_comparable(first[0], first[1], name, report)
    each = 1 - (1 - confidence) / (len(found) - 1)
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "confidence": confidence,
        "confidence_each": each,
        "reports": [_about(name, report) for name, report in found],
        "notes": [first[1]["statement"], *_notes(found)],
        "comparisons": [
            {
                "a": escape(first[0]),
                "b": escape(name),
                "rates": [_rate(first[1], report, rate, each) for rate in RATES],
            }
            for name, report in found[1:]
        ],
    }


def _foreign(name: str, report: Mapping[str, JSON] | None) -> Mapping[str, JSON]:
    if report is None:
        raise InputError(
            "is a report of impact-twin, and foreign ones ran other cases",
            where=name,
            mend="Compare imported reports among themselves.",
        )
    return report


def _check_comparable(
    first: str, a: Mapping[str, JSON], second: str, b: Mapping[str, JSON]
) -> None:
    same = all(a["identity"][key] == b["identity"][key] for key in ("suite", "protocol"))
    if not same or {item["pair"] for item in a["pairs"]} != {item["pair"] for item in b["pairs"]}:
        raise InputError(
            f"not comparable with {first}: it ran other scenarios",
            where=second,
            mend="Run both agents on the same version of that tool.",
        )


def _about(name: str, report: Mapping[str, JSON]) -> dict[str, JSON]:
    return {
        "name": escape(name),
        "agent": escape(report["identity"]["agent"]),
        "plan": None,
        "n": report["summary"]["n"],
        "unresolved": report["summary"]["rates"]["attack_resistance"]["errors"],
        "replicates": "no variation seen" if report["summary"]["all_alike"] else "unknown",
    }


def _notes(found: Sequence[tuple[str, Mapping[str, JSON]]]) -> Iterator[str]:
    """Each note once, with the reports that it concerns."""
    concerned: dict[str, list[str]] = {}
    for name, report in found:
        for note in report["notes"]:
            concerned.setdefault(note, []).append(name)
    for note, names in concerned.items():
        yield escape(note if len(names) == len(found) else f"{', '.join(names)}: {note}")


def _rate(
    a: Mapping[str, JSON], b: Mapping[str, JSON], rate: str, confidence: float
) -> dict[str, JSON]:
    from impact_twin.statistics.compare import compare_counts

    columns = [(item["pair"], _count(a, item, rate), _count(b, item, rate)) for item in a["pairs"]]
    found = compare_counts(columns, rate, confidence)
    withheld = a["summary"]["all_alike"] or b["summary"]["all_alike"]
    data: dict[str, JSON] = rounded(_json(found, withheld=withheld))
    return data


def _count(report: Mapping[str, JSON], item: Mapping[str, JSON], rate: str) -> GroupCount:
    from impact_twin.statistics.compare import GroupCount

    rows = [row for row in report["pair_trials"] if row["pair"] == item["pair"]]
    found = counts_of(rate, rows)
    return GroupCount(found.known, found.errors, found.n)


def _json(found: RateComparison, *, withheld: bool) -> dict[str, JSON]:
    return {
        "rate": found.rate,
        "a": _group(found.a),
        "b": _group(found.b),
        "difference": found.difference,
        "bounds": found.bounds,
        "interval": None if withheld else found.interval,
        "p_value": None if withheld else found.p_value,
        "verdict": _WITHHELD if withheld else found.verdict,
        "pairs": [
            {
                "pair": pair.pair,
                "a": _group(pair.a),
                "b": _group(pair.b),
                "difference": pair.difference,
                "bounds": pair.bounds,
                "interval": None if withheld else pair.newcombe,
                "p_value": None if withheld else pair.p_value,
                "p_holm": None if withheld else pair.p_holm,
                "verdict": _WITHHELD if withheld else pair.verdict,
            }
            for pair in found.pairs
        ],
    }


def _group(group: GroupCount) -> dict[str, JSON]:
    return {"count": group.count, "unresolved": group.unresolved, "n": group.n}
