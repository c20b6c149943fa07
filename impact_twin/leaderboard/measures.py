"""A share over pairs: repeats collapsed, intervals over pairs, bounds for what stays unknown.

Repeats of one pair at temperature 0 are technical replicates, so the sampling unit is the pair:
its repeats become one value, and pairs are resampled. Where a result is unknown, everything is
computed twice, with the unknown ones counted as no and as yes, and the outer ends are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from impact_twin.leaderboard.protocol import Buckets
from impact_twin.statistics.bootstrap import EXACT, SAMPLED, stratified_bootstrap
from impact_twin.statistics.intervals import wilson

CI_BASIS = "cluster"
Outcomes = Sequence[Sequence[bool | None]]
"""For each pair its outcome in each repeat; None is unknown."""

Ends = tuple[float, float]


@dataclass(frozen=True)
class Measure:
    """A share of yes over the pairs of one or more suites, each suite weighted by its pairs.

    Attributes:
        value: Mean over pairs of the mean over known repeats; None when nothing is known.
        bounds: The share if every unknown outcome were no, and if every one were yes.
        interval: Cluster bootstrap percentile interval, exact or sampled, over those bounds.
        wilson: Wilson's score interval over pairs, over those bounds.
        method: ``exact`` (every resample counted) or ``sampled``.
        seed: Seed of the sampled resamples; None when exact.
        pairs: Number of pairs.
        runs: Number of planned outcomes.
        unresolved: Those of them that are unknown.
        per_repeat: Bounds of the share in each repeat.
    """

    value: float | None
    bounds: Ends
    interval: Ends
    wilson: Ends
    method: str
    seed: int | None
    pairs: int
    runs: int
    unresolved: int
    per_repeat: tuple[Ends, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the measure with figures of 12 decimals."""
        return {
            "value": None if self.value is None else round(self.value, 12),
            "bounds": _rounded(self.bounds),
            "interval": _rounded(self.interval),
            "wilson": _rounded(self.wilson),
            "method": self.method,
            "seed": self.seed,
            "pairs": self.pairs,
            "runs": self.runs,
            "unresolved": self.unresolved,
            "per_repeat": [_rounded(ends) for ends in self.per_repeat],
        }


def measure(suites: Sequence[Outcomes], confidence: float) -> Measure:
    """Measure a share over one suite, or over several combined by a stratified bootstrap.

    Args:
        suites: For each suite its pairs' outcomes, every pair with the same number of repeats.
        confidence: Two-sided, in (0, 1).

    Raises:
        ValueError: No suite, a suite without pairs, or pairs with different numbers of repeats.

    Example:
        >>> found = measure([[(True, True, True), (True, False, None)]], 0.95)
        >>> found.value, found.bounds, found.unresolved
        (0.75, (0.6666666666666666, 0.8333333333333334), 1)
    """
    counts = {len(pair) for suite in suites for pair in suite}
    if len(counts) != 1 or not all(suites):
        raise ValueError("every pair of every suite needs the same number of repeats")
    repeats = counts.pop()
    flat = [pair for suite in suites for pair in suite]
    total = len(flat)
    low = [[Fraction(_yes(pair, False), repeats) for pair in suite] for suite in suites]
    high = [[Fraction(_yes(pair, True), repeats) for pair in suite] for suite in suites]
    weights = [len(suite) for suite in suites]
    lower = stratified_bootstrap(low, weights, confidence)
    upper = lower if low == high else stratified_bootstrap(high, weights, confidence)
    sampled = SAMPLED in (lower.method, upper.method)
    yes = (sum(map(sum, low), Fraction(0)), sum(map(sum, high), Fraction(0)))
    return Measure(
        value=_known_mean(flat),
        bounds=(float(yes[0] / total), float(yes[1] / total)),
        interval=(lower.interval.lo, upper.interval.hi),
        wilson=(
            _wilson(float(yes[0]), total, confidence)[0],
            _wilson(float(yes[1]), total, confidence)[1],
        ),
        method=SAMPLED if sampled else EXACT,
        seed=(upper.seed if lower.seed is None else lower.seed) if sampled else None,
        pairs=total,
        runs=total * repeats,
        unresolved=sum(outcome is None for pair in flat for outcome in pair),
        per_repeat=tuple(_repeat_bounds(flat, repeat) for repeat in range(repeats)),
    )


@dataclass(frozen=True)
class Standing:
    """A row's bucket and whether it may be claimed; ``reasons`` says what forbids it."""

    bucket: str | None
    status: str
    reasons: tuple[str, ...]


CONFIRMED = "confirmed"
PROVISIONAL = "provisional"


def standing(robustness: Measure, buckets: Buckets) -> Standing:
    """Place a robustness in a bucket; confirmed only if nothing that is known can move it.

    The bootstrap interval, the Wilson interval over pairs and the bounds of each repeat must all
    lie inside one bucket. The bootstrap alone isn't enough: of identical values it has width zero.
    """
    if robustness.value is None:
        return Standing(None, PROVISIONAL, ("nothing is known",))
    bucket = buckets.of(robustness.value)
    reasons = []
    for name, ends in (
        ("bootstrap interval", robustness.interval),
        ("Wilson interval over pairs", robustness.wilson),
    ):
        if {buckets.of(end) for end in ends} != {bucket}:
            low, high = (percent(end, buckets) for end in ends)
            reasons.append(f"the {name} reaches from {low} to {high}")
    others = [
        str(number)
        for number, ends in enumerate(robustness.per_repeat, start=1)
        if {buckets.of(end) for end in ends} != {bucket}
    ]
    if others:
        reasons.append(f"repeat {', '.join(others)} is not surely {bucket}")
    if robustness.unresolved:
        reasons = [f"{reason} (with {robustness.unresolved} unresolved)" for reason in reasons]
    return Standing(bucket, PROVISIONAL if reasons else CONFIRMED, tuple(reasons))


def _yes(pair: Sequence[bool | None], unknown: bool) -> int:
    return sum(unknown if outcome is None else outcome for outcome in pair)


def _known_mean(pairs: Outcomes) -> float | None:
    means = []
    for pair in pairs:
        known = [outcome for outcome in pair if outcome is not None]
        if known:
            means.append(Fraction(sum(known), len(known)))
    return float(sum(means, Fraction(0)) / len(means)) if means else None


def _repeat_bounds(pairs: Outcomes, repeat: int) -> Ends:
    column = [[pair[repeat]] for pair in pairs]
    return (
        sum(_yes(cell, False) for cell in column) / len(column),
        sum(_yes(cell, True) for cell in column) / len(column),
    )


def _wilson(yes: float, total: int, confidence: float) -> Ends:
    # A sum of thirds may leave [0, total] by a last unit.
    found = wilson(min(max(yes, 0.0), float(total)), total, confidence)
    if found is None:
        raise ValueError("no pairs")
    return (found.lo, found.hi)


def _rounded(ends: Ends) -> list[float]:
    return [round(ends[0], 12), round(ends[1], 12)]


def percent(share: float, buckets: Buckets) -> str:
    """Write a share with as many decimals as its bucket needs.

    >>> percent(0.49998, Buckets(0.9, 0.5)), percent(0.5, Buckets(0.9, 0.5))
    ('49.998 %', '50.0 %')
    """
    for decimals in range(1, 6):
        if buckets.of(round(share, decimals + 2)) == buckets.of(share):
            break
    return f"{100 * share:.{decimals}f} %"
