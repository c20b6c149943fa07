"""Comparing reports on the same suite: a baseline against each of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.report.observations import observation_table
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.statistics.compare import GroupCount, PairComparison, RateComparison

KIND = "impact-twin/comparison"
SCHEMA_VERSION = 1
WITHHELD = "withheld"
NO_COPYING_SEEN = "no copying seen"


def compare_reports(
    reports: Sequence[tuple[str, Mapping[str, JSON]]], confidence: float = 0.95
) -> dict[str, JSON]:
    """Compare every further report with the first one.

    With m further reports each comparison is made at 1 - alpha / m (Bonferroni), so that all
    verdicts of one rate hold together at the confidence asked for.

    Args:
        reports: (name, report), the baseline first; at least two.
        confidence: Two-sided, in (0, 1), for all comparisons of one rate together.

    Returns:
        `kind`, `confidence`, `reports[]`, `notes[]` and `comparisons[]`, each with the three rates
        of `statistics.compare.COMPARED_RATES`: suite row and the rows of the pairs.

    Raises:
        InputError: fewer than two reports, an impossible confidence, or reports that can't be
            compared; it says which and why.
    """
    if len(reports) < 2:
        raise InputError("name two reports or more", mend="impact-twin compare A B")
    if not 0 < confidence < 1:
        raise InputError(
            f"{confidence} is no confidence", where="--confidence", mend="Give one in (0, 1)."
        )
    from impact_twin.statistics.compare import compare

    baseline_name, baseline = reports[0]
    for name, report in reports[1:]:
        _check_comparable(baseline_name, baseline, name, report)
    each = 1 - (1 - confidence) / (len(reports) - 1)
    first = observation_table(baseline)
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "confidence": confidence,
        "confidence_each": each,
        "reports": [_about(name, report) for name, report in reports],
        "notes": _notes(reports),
        "comparisons": [
            {
                "name": escape(name),
                "rates": [
                    _rate_json(rate, _withheld(baseline, report), _copied_pairs(baseline, report))
                    for rate in compare(first, observation_table(report), each)
                ],
            }
            for name, report in reports[1:]
        ],
    }


def _check_comparable(
    first: str, a: Mapping[str, JSON], second: str, b: Mapping[str, JSON]
) -> None:
    one, other = a["identity"]["suite"], b["identity"]["suite"]
    if one["digest"] != other["digest"]:
        same_name = one["id"] == other["id"]
        what = "its texts, facts or scoring changed" if same_name else "another suite"
        raise InputError(
            f"not comparable with {first}: {other['id']} ({other['digest'][:19]}) is not "
            f"{one['id']} ({one['digest'][:19]}), {what}",
            where=second,
            mend="Run both agents on the same suite.",
        )
    if a["plan"]["pairs"] != b["plan"]["pairs"]:
        raise InputError(
            f"not comparable with {first}: it ran {', '.join(b['plan']['pairs'])}, "
            f"the other {', '.join(a['plan']['pairs'])}",
            where=second,
            mend="Run both agents on the same pairs.",
        )


def _about(name: str, report: Mapping[str, JSON]) -> dict[str, JSON]:
    summary = report["summary"]
    return {
        "name": escape(name),
        "agent": escape(report["identity"]["agent"]["name"]),
        "plan": report["plan"]["digest"],
        "n": summary["aggregate"]["n"],
        "unresolved": summary["aggregate"]["classes"]["unresolved"],
        "replicates": summary["replicates"]["label"],
    }


def _notes(reports: Sequence[tuple[str, Mapping[str, JSON]]]) -> list[str]:
    notes = []
    for name, report in reports:
        if _no_information(report):
            notes.append(
                f"{escape(name)}: repeats add no information (identical or copied runs), so "
                "intervals, p-values and verdicts that rest on them are withheld."
            )
        elif copied := _copied_pairs(report):
            notes.append(
                f"{escape(name)}: repeats of {', '.join(sorted(copied))} add no information, so "
                "those rows have no verdict; the row of all pairs still counts them."
            )
        if report["identity"]["run"]["stopped"]:
            notes.append(f"{escape(name)}: the run stopped before its plan ended.")
        if report["identity"]["run"]["looks"]:
            notes.append(
                f"{escape(name)}: the run looked early; these intervals and tests take its n as "
                "fixed beforehand, so here they are descriptive."
            )
    versions = [report["identity"]["versions"] for _, report in reports]
    for package in sorted({key for found in versions for key in found}):
        if len({found.get(package) for found in versions}) > 1:
            listed = ", ".join(str(found.get(package, "none")) for found in versions)
            notes.append(f"{escape(package)} differs: {escape(listed)}.")
    return notes


def _no_information(report: Mapping[str, JSON]) -> bool:
    return bool(report["summary"]["replicates"]["withheld"])


def _withheld(a: Mapping[str, JSON], b: Mapping[str, JSON]) -> bool:
    return _no_information(a) or _no_information(b)


def _copied_pairs(*reports: Mapping[str, JSON]) -> set[str]:
    """Pairs whose repeats add no information in one of the reports."""
    return {
        row["pair"]
        for report in reports
        for row in report["summary"]["pairs"]
        if row["replicates"] != NO_COPYING_SEEN
    }


def _rate_json(rate: RateComparison, withheld: bool, copied: set[str]) -> dict[str, JSON]:
    return {
        "rate": rate.rate,
        "a": _count(rate.a),
        "b": _count(rate.b),
        "difference": _figure(rate.difference),
        "bounds": _interval(rate.bounds),
        "interval": None if withheld else _interval(rate.interval),
        "p_value": None if withheld else _figure(rate.p_value),
        "verdict": WITHHELD if withheld else rate.verdict,
        "pairs": [
            _pair_json(pair, withheld=withheld or pair.pair in copied) for pair in rate.pairs
        ],
    }


def _pair_json(pair: PairComparison, *, withheld: bool) -> dict[str, JSON]:
    return {
        "pair": pair.pair,
        "a": _count(pair.a),
        "b": _count(pair.b),
        "difference": _figure(pair.difference),
        "bounds": _interval(pair.bounds),
        "interval": None if withheld else _interval(pair.newcombe),
        "p_value": None if withheld else _figure(pair.p_value),
        "p_holm": None if withheld else _figure(pair.p_holm),
        "verdict": WITHHELD if withheld else pair.verdict,
    }


def _count(group: GroupCount) -> dict[str, JSON]:
    return {"count": group.count, "unresolved": group.unresolved, "n": group.n}


def _figure(value: float | None) -> float | None:
    return None if value is None else round(value, 12)


def _interval(value: Sequence[float] | None) -> list[float] | None:
    return None if value is None else [round(end, 12) for end in value]
