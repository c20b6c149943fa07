"""Cluster bootstrap over pairs: exact where the values allow it, sampled with a seed otherwise.

Repeats of one pair are not independent of each other, so each pair is first collapsed to one value
(its mean, its majority, …) and pairs are resampled. The percentile interval's ends are inverse-CDF
quantiles, not interpolated; BCa is not offered because on lattice data it depends on how ties are
counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from impact_twin.statistics.draws import Draws
from impact_twin.statistics.intervals import Interval, check_confidence
from impact_twin.statistics.lattice import (
    Lattice,
    TooLargeError,
    resampled_mean,
    weighted_sum,
)

EXACT = "exact"
SAMPLED = "sampled"
Value = Fraction | int | float
Values = Sequence[Fraction | int | float]

_LARGEST_DENOMINATOR = 10_000


@dataclass(frozen=True)
class BootstrapInterval:
    """A bootstrap percentile interval of a (weighted) mean over clusters.

    Attributes:
        estimate: The (weighted) mean of the clusters' values.
        interval: Percentile interval, ends by the inverse CDF.
        standard_error: Bootstrap standard error (plug-in variance), exact in both methods.
        clusters: Number of clusters resampled, of each suite.
        method: `exact` (every resample counted) or `sampled`.
        resamples: Number of resamples drawn; None when exact.
        seed: Seed of the draws; None when exact.
        confidence: Two-sided.
    """

    estimate: float
    interval: Interval
    standard_error: float
    clusters: tuple[int, ...]
    method: str
    resamples: int | None
    seed: int | None
    confidence: float


def cluster_bootstrap(
    values: Values, confidence: float = 0.95, *, resamples: int = 20_000, seed: int = 0
) -> BootstrapInterval:
    """The bootstrap of a mean over clusters of one suite.

    Args:
        values: One value per cluster, e.g. thirds for three repeats. Floats within 1e-12 of a
            fraction with a denominator up to 10,000 count as that fraction.
        confidence: Two-sided, in (0, 1).
        resamples: Draws, when the exact distribution is out of reach.
        seed: Seed of those draws.

    Raises:
        ValueError: No values, a value that isn't finite, or an impossible confidence.

    Example:
        >>> third = Fraction(1, 3)
        >>> found = cluster_bootstrap([1, 1, 2 * third, 0, 2 * third, 1])
        >>> [round(end, 4) for end in found.interval]
        [0.3889, 0.9444]
    """
    return stratified_bootstrap([values], [1], confidence, resamples=resamples, seed=seed)


def stratified_bootstrap(
    suites: Sequence[Values],
    weights: Values,
    confidence: float = 0.95,
    *,
    resamples: int = 20_000,
    seed: int = 0,
) -> BootstrapInterval:
    """The bootstrap of a weighted mean of several suites, each resampled by itself.

    Args:
        suites: For each suite one value per cluster (see `cluster_bootstrap`).
        weights: One positive weight per suite, e.g. its number of clusters; scaled to sum to 1.
        confidence: Two-sided, in (0, 1).
        resamples: Draws, when the exact distribution is out of reach.
        seed: Seed of those draws.

    Raises:
        ValueError: No suite, an empty suite, a weight that isn't positive, a number that isn't
            finite, or an impossible confidence.
    """
    check_confidence(confidence)
    _check(suites, weights)
    shares = np.array([float(weight) for weight in weights])
    shares = shares / shares.sum()
    arrays = [np.array([float(value) for value in suite]) for suite in suites]
    variance = sum(
        float(share) ** 2 * _variance(array.tolist()) / len(array)
        for share, array in zip(shares, arrays, strict=True)
    )
    lattice = _exact(suites, weights)
    if lattice is None:
        means = [float(share) * float(a.mean()) for share, a in zip(shares, arrays, strict=True)]
        estimate = math.fsum(means)
        interval = _sampled(arrays, shares, confidence, resamples, seed)
    else:
        estimate = float(lattice.mean())
        interval = percentile_interval(lattice, confidence)
    return BootstrapInterval(
        estimate=estimate,
        interval=interval,
        standard_error=math.sqrt(variance),
        clusters=tuple(len(array) for array in arrays),
        method=SAMPLED if lattice is None else EXACT,
        resamples=resamples if lattice is None else None,
        seed=seed if lattice is None else None,
        confidence=confidence,
    )


def percentile_interval(lattice: Lattice, confidence: float) -> Interval:
    """The percentile interval of an exact distribution, with the confidence read as a decimal.

    Raises:
        ValueError: Impossible confidence.
    """
    check_confidence(confidence)
    tail = (1 - Fraction(repr(float(confidence)))) / 2
    return Interval(float(lattice.quantile(tail)), float(lattice.quantile(1 - tail)))


def as_fraction(value: Value) -> Fraction | None:
    """The fraction with a denominator up to 10,000 that the value is within 1e-12 of, or None."""
    if isinstance(value, int | Fraction):
        return Fraction(value)
    near = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    return near if abs(float(near) - value) <= 1e-12 else None


def _exact(suites: Sequence[Values], weights: Values) -> Lattice | None:
    fractions = [[as_fraction(value) for value in suite] for suite in suites]
    shares = [as_fraction(weight) for weight in weights]
    known = [[value for value in suite if value is not None] for suite in fractions]
    whole = [weight for weight in shares if weight is not None]
    if len(whole) < len(shares) or any(
        len(k) < len(f) for k, f in zip(known, fractions, strict=True)
    ):
        return None
    try:
        parts = [resampled_mean(suite) for suite in known]
        scale = sum(whole, Fraction(0))
        return weighted_sum(parts, [weight / scale for weight in whole])
    except TooLargeError:
        return None


def _sampled(
    arrays: Sequence[npt.NDArray[np.float64]],
    shares: npt.NDArray[np.float64],
    confidence: float,
    resamples: int,
    seed: int,
) -> Interval:
    random = Draws(seed)
    means = np.zeros(resamples)
    for array, share in zip(arrays, shares, strict=True):
        for place in range(resamples):
            means[place] += share * array[random.below(len(array), len(array))].mean()
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], method="inverted_cdf")
    return Interval(float(low), float(high))


def _variance(values: Sequence[float]) -> float:
    # Exactly rounded sums, so that the order of the clusters changes no digit.
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def _check(suites: Sequence[Values], weights: Values) -> None:
    if not suites or len(suites) != len(weights):
        raise ValueError(f"{len(suites)} suites with {len(weights)} weights")
    if not all(suites):
        raise ValueError("a suite has no clusters")
    numbers = [float(value) for suite in suites for value in suite]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a value is not finite")
    if not all(0 < float(weight) < math.inf for weight in weights):
        raise ValueError("a weight is not a positive finite number")
