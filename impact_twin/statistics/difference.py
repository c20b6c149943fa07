"""Intervals for a difference of two proportions: Newcombe, and Miettinen-Nurminen over strata."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from impact_twin.statistics.intervals import Interval, check_counts, two_sided_z, wilson_at

Weights = Literal["equal", "mantel-haenszel"]


class TwoGroups(NamedTuple):
    """One stratum: events and trials of group A and of group B. The difference is A minus B."""

    k_a: int
    n_a: int
    k_b: int
    n_b: int

    @property
    def difference(self) -> float:
        """k_a / n_a - k_b / n_b; both n must be positive."""
        return self.k_a / self.n_a - self.k_b / self.n_b


def newcombe(table: TwoGroups, confidence: float = 0.95) -> Interval:
    """Newcombe's hybrid score interval (his method 10) for one difference.

    Each end adds the squared distances of the two Wilson limits that could move it. Source:
    Newcombe 1998, Statistics in Medicine 17:873-890.

    Raises:
        ValueError: Impossible counts, an empty group or an impossible confidence.

    Example:
        >>> [round(end, 4) for end in newcombe(TwoGroups(56, 70, 48, 80))]
        [0.0524, 0.3339]
    """
    _check([table])
    z = two_sided_z(confidence)
    share_a, share_b = table.k_a / table.n_a, table.k_b / table.n_b
    a, b = wilson_at(table.k_a, table.n_a, z), wilson_at(table.k_b, table.n_b, z)
    return Interval(
        table.difference - math.hypot(share_a - a.lo, b.hi - share_b),
        table.difference + math.hypot(a.hi - share_a, share_b - b.lo),
    )


def stratum_weights(tables: Sequence[TwoGroups], weights: Weights) -> list[float]:
    """Weights of the strata, summing to 1.

    `equal` estimates the difference of the fixed suite; `mantel-haenszel` weighs a stratum with
    n_a n_b / (n_a + n_b). They differ only when the strata's n do.
    """
    raw = [
        1.0 if weights == "equal" else table.n_a * table.n_b / (table.n_a + table.n_b)
        for table in tables
    ]
    total = math.fsum(raw)
    return [weight / total for weight in raw]


def stratified_difference(tables: Sequence[TwoGroups], weights: Weights = "equal") -> float:
    """The weighted mean of the strata's differences.

    Raises:
        ValueError: No strata, impossible counts or an empty group.
    """
    _check(tables)
    shares = stratum_weights(tables, weights)
    return math.fsum(w * table.difference for w, table in zip(shares, tables, strict=True))


def miettinen_nurminen(
    tables: Sequence[TwoGroups], confidence: float = 0.95, weights: Weights = "equal"
) -> Interval:
    """The score interval for a stratified difference.

    The set of d with |sum w_i (d_i - d)| <= z sqrt(sum w_i^2 V_i(d)), V_i(d) the variance at the
    maximum-likelihood estimate constrained to a difference of d, times N_i / (N_i - 1). Source:
    Miettinen & Nurminen 1985, Statistics in Medicine 4:213-226.

    Args:
        tables: One or more strata.
        confidence: Two-sided, in (0, 1).
        weights: See `stratum_weights`.

    Raises:
        ValueError: No strata, impossible counts, an empty group or an impossible confidence.

    Example:
        >>> [round(end, 4) for end in miettinen_nurminen([TwoGroups(56, 70, 48, 80)])]
        [0.0528, 0.3382]
    """
    z = two_sided_z(confidence)
    estimate = stratified_difference(tables, weights)
    shares = stratum_weights(tables, weights)

    def inside(delta: float) -> bool:
        variance = math.fsum(
            w * w * _constrained_variance(table, delta)
            for w, table in zip(shares, tables, strict=True)
        )
        return abs(estimate - delta) <= z * math.sqrt(variance)

    return Interval(_edge(inside, estimate, -1.0), _edge(inside, estimate, 1.0))


def constrained_estimate(table: TwoGroups, delta: float) -> float:
    """The maximum-likelihood p_b under p_a = p_b + delta, for -1 < delta < 1.

    It is the middle root of a cubic (Miettinen & Nurminen 1985, appendix), in Viete's closed form,
    then polished by bisection-guarded Newton steps, since the arc cosine loses half the digits near
    a double root.
    """
    k_a, n_a, k_b, n_b = table
    total, events = n_a + n_b, k_a + k_b
    c2 = ((n_a + 2 * n_b) * delta - total - events) / total
    c1 = ((n_b * delta - total - 2 * k_b) * delta + events) / total
    c0 = k_b * delta * (1.0 - delta) / total
    low, high = max(0.0, -delta), min(1.0, 1.0 - delta)
    shift = c2 / 3.0
    q = shift**3 - c1 * c2 / 6.0 + c0 / 2.0
    p = math.copysign(math.sqrt(max(shift * shift - c1 / 3.0, 0.0)), q)
    cosine = min(max(q / p**3, -1.0), 1.0) if p**3 else 0.0
    root = 2.0 * p * math.cos((math.pi + math.acos(cosine)) / 3.0) - shift
    root = min(max(root, low), high)
    for _ in range(3):
        slope = (3.0 * root + 2.0 * c2) * root + c1
        if slope == 0.0:
            break
        step = (((root + c2) * root + c1) * root + c0) / slope
        if abs(step) > 1e-6:
            break
        root = min(max(root - step, low), high)
    return root


def _constrained_variance(table: TwoGroups, delta: float) -> float:
    share_b = constrained_estimate(table, delta)
    share_a = min(max(share_b + delta, 0.0), 1.0)
    total = table.n_a + table.n_b
    spread = share_a * (1.0 - share_a) / table.n_a + share_b * (1.0 - share_b) / table.n_b
    return spread * total / (total - 1.0)


def _edge(inside: Callable[[float], bool], estimate: float, outer: float) -> float:
    """The last value inside, walking from the estimate to the outer end."""
    near, far = estimate, outer
    while True:
        middle = (near + far) / 2.0
        if middle in (near, far):
            # The outer end has no variance: an edge one rounding away from it is that end.
            return outer if abs(near - outer) < 1e-15 else near
        near, far = (middle, far) if inside(middle) else (near, middle)


def _check(tables: Sequence[TwoGroups]) -> None:
    if not tables:
        raise ValueError("there is no stratum to compare")
    for table in tables:
        check_counts(table.k_a, 0, table.n_a)
        check_counts(table.k_b, 0, table.n_b)
        if not (table.n_a and table.n_b):
            raise ValueError("a group has no trials")
