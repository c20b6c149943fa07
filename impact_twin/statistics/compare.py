"""Comparing two reports on the same pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from impact_twin.statistics.conditional import conditional_test, holm
from impact_twin.statistics.difference import (
    TwoGroups,
    miettinen_nurminen,
    newcombe,
    stratified_difference,
)
from impact_twin.statistics.intervals import Interval, check_confidence
from impact_twin.statistics.rates import rate_counts
from impact_twin.statistics.table import ObservationTable

COMPARED_RATES: tuple[str, ...] = ("secure_utility", "attack_success", "benign_utility")
LOWER_IS_BETTER = frozenset({"attack_success"})

BETTER = "better"
WORSE = "worse"
NO_DIFFERENCE_SHOWN = "no difference shown"


@dataclass(frozen=True)
class GroupCount:
    """One report's count in one pair or over the suite."""

    count: int
    unresolved: int
    n: int


@dataclass(frozen=True)
class PairComparison:
    """One pair in two reports; the difference is B minus A.

    Attributes:
        pair: Its name.
        a: Counts of the first report.
        b: Counts of the second report.
        difference: Difference of the shares seen; None when a report has no trials of the pair.
        bounds: Smallest and largest difference over every way to resolve the unresolved.
        newcombe: Newcombe's interval, its ends from those extremes.
        p_value: Fisher's exact test, two-sided, at the least favourable of those extremes.
        p_holm: The same after Holm's correction over the pairs.
        verdict: `better`, `worse` (B against A), or `no difference shown`, from `p_holm`.
    """

    pair: str
    a: GroupCount
    b: GroupCount
    difference: float | None
    bounds: Interval | None
    newcombe: Interval | None
    p_value: float | None
    p_holm: float | None
    verdict: str


@dataclass(frozen=True)
class RateComparison:
    """One rate in two reports; the difference is B minus A.

    Attributes:
        rate: Its name.
        a: Counts of the first report over the compared pairs.
        b: Counts of the second report over them.
        difference: Mean over the pairs of the pairs' differences, each pair weighing the same; None
            when no pair has trials in both.
        bounds: Smallest and largest such difference over every way to resolve the unresolved.
        interval: Stratified Miettinen-Nurminen, its ends from those extremes.
        p_value: Exact conditional Cochran-Mantel-Haenszel test, two-sided, at the least favourable
            of those extremes.
        verdict: `better` or `worse` (B against A) when the p-value is at most alpha and the
            interval leaves out 0 on the same side; otherwise `no difference shown`.
        confidence: Two-sided; alpha is 1 - confidence.
        pairs: One comparison for each pair, always to be shown: an agent can be better on some
            pairs and worse on others.
    """

    rate: str
    a: GroupCount
    b: GroupCount
    difference: float | None
    bounds: Interval | None
    interval: Interval | None
    p_value: float | None
    verdict: str
    confidence: float
    pairs: tuple[PairComparison, ...]


@dataclass(frozen=True)
class _Extremes:
    """Strata as B minus A: as seen, and where the difference is smallest and largest."""

    seen: list[TwoGroups]
    lowest: list[TwoGroups]
    highest: list[TwoGroups]


def compare(
    a: ObservationTable, b: ObservationTable, confidence: float = 0.95
) -> tuple[RateComparison, ...]:
    """Compare two reports, rate by rate.

    Each verdict holds at the given confidence by itself; there are as many verdicts as rates.

    Args:
        a: The first report, the baseline.
        b: The second report.
        confidence: Two-sided, in (0, 1).

    Returns:
        One comparison for each of `COMPARED_RATES`.

    Raises:
        ValueError: The reports have other pairs, or the confidence is impossible.
    """
    check_confidence(confidence)
    if set(a.pairs) != set(b.pairs):
        raise ValueError(f"different pairs: {sorted(set(a.pairs) ^ set(b.pairs))}")
    return tuple(compare_rate(a, b, rate, confidence) for rate in COMPARED_RATES)


def compare_rate(
    a: ObservationTable, b: ObservationTable, rate: str, confidence: float = 0.95
) -> RateComparison:
    """Compare one rate of two reports on the same pairs (see `compare`)."""
    counts_a, counts_b = _counts(a, rate), _counts(b, rate)
    columns = [(name, counts_a[name], counts_b[name]) for name in a.pairs]
    return compare_counts(columns, rate, confidence)


def compare_counts(
    columns: Sequence[tuple[str, GroupCount, GroupCount]], rate: str, confidence: float
) -> RateComparison:
    """Compare one rate from its counts.

    Args:
        columns: (pair, counts of A, counts of B) for each pair.
        rate: The rate's name; it decides which direction is better.
        confidence: Two-sided, in (0, 1).
    """
    both = [(one, other) for _, one, other in columns if one.n and other.n]
    strata = _extremes(both)
    interval = bounds = p_value = difference = None
    if both:
        difference = stratified_difference(strata.seen)
        bounds = Interval(
            stratified_difference(strata.lowest), stratified_difference(strata.highest)
        )
        interval = Interval(
            miettinen_nurminen(strata.lowest, confidence).lo,
            miettinen_nurminen(strata.highest, confidence).hi,
        )
        p_value = _worst_p(strata)
    return RateComparison(
        rate=rate,
        a=_sum([one for _, one, _ in columns]),
        b=_sum([other for _, _, other in columns]),
        difference=difference,
        bounds=bounds,
        interval=interval,
        p_value=p_value,
        verdict=_verdict(rate, interval, p_value, confidence),
        confidence=confidence,
        pairs=_pairs(columns, rate, confidence),
    )


def _pairs(
    columns: Sequence[tuple[str, GroupCount, GroupCount]], rate: str, confidence: float
) -> tuple[PairComparison, ...]:
    p_values = [
        _worst_p(_extremes([(one, other)])) if one.n and other.n else None
        for _, one, other in columns
    ]
    adjusted = iter(holm([p_value for p_value in p_values if p_value is not None]))
    found = []
    for (name, one, other), p_value in zip(columns, p_values, strict=True):
        if p_value is None:
            found.append(
                PairComparison(name, one, other, None, None, None, None, None, NO_DIFFERENCE_SHOWN)
            )
            continue
        strata = _extremes([(one, other)])
        interval = Interval(
            newcombe(strata.lowest[0], confidence).lo, newcombe(strata.highest[0], confidence).hi
        )
        p_holm = next(adjusted)
        found.append(
            PairComparison(
                pair=name,
                a=one,
                b=other,
                difference=strata.seen[0].difference,
                bounds=Interval(strata.lowest[0].difference, strata.highest[0].difference),
                newcombe=interval,
                p_value=p_value,
                p_holm=p_holm,
                verdict=_verdict(rate, interval, p_holm, confidence),
            )
        )
    return tuple(found)


def _verdict(rate: str, interval: Interval | None, p_value: float | None, confidence: float) -> str:
    """The word: the exact test keeps the error rate, the interval shows the size and agrees."""
    if interval is None or p_value is None or p_value > 1.0 - confidence:
        return NO_DIFFERENCE_SHOWN
    if interval.lo <= 0.0 <= interval.hi:
        return NO_DIFFERENCE_SHOWN
    return BETTER if (interval.lo > 0.0) != (rate in LOWER_IS_BETTER) else WORSE


def _worst_p(strata: _Extremes) -> float:
    """The larger p-value of the two extremes; 1 when they lie on both sides of the null mean."""
    low, high = conditional_test(strata.lowest), conditional_test(strata.highest)
    if (low.events - low.mean) * (high.events - high.mean) < 0.0:
        return 1.0
    return max(low.p_value, high.p_value)


def _extremes(both: Sequence[tuple[GroupCount, GroupCount]]) -> _Extremes:
    # B comes first: the difference shown is B minus A.
    seen = [TwoGroups(b.count, b.n, a.count, a.n) for a, b in both]
    return _Extremes(
        seen=seen,
        lowest=[
            row._replace(k_b=row.k_b + a.unresolved) for row, (a, _) in zip(seen, both, strict=True)
        ],
        highest=[
            row._replace(k_a=row.k_a + b.unresolved) for row, (_, b) in zip(seen, both, strict=True)
        ],
    )


def _counts(table: ObservationTable, rate: str) -> dict[str, GroupCount]:
    counts = rate_counts(table, rate)
    columns = zip(
        counts.seen.tolist(), counts.unknown.tolist(), counts.planned.tolist(), strict=True
    )
    return {name: GroupCount(*row) for name, row in zip(table.pairs, columns, strict=True)}


def _sum(groups: Sequence[GroupCount]) -> GroupCount:
    return GroupCount(
        sum(group.count for group in groups),
        sum(group.unresolved for group in groups),
        sum(group.n for group in groups),
    )
