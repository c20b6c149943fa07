"""Intervals for one proportion: Wilson's score interval and bounds with unresolved cases."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """A closed interval; both ends are plain doubles."""

    lo: float
    hi: float

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.hi - self.lo

    def contains(self, value: float) -> bool:
        """Whether the value lies in the closed interval."""
        return self.lo <= value <= self.hi


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside the open interval (0, 1).

    Raises:
        ValueError: It is 0, 1, outside, or not a number.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence {confidence!r} is not between 0 and 1")


def check_counts(k: float, u: float, n: float) -> None:
    """Refuse counts that break 0 <= k, 0 <= u, k + u <= n.

    Raises:
        ValueError: The counts are impossible.
    """
    if not (k >= 0 and u >= 0 and k + u <= n):
        raise ValueError(f"impossible counts: {k} events and {u} unresolved of {n}")


def two_sided_z(confidence: float) -> float:
    """The normal quantile of a two-sided interval, e.g. 1.959963984540054 for 0.95.

    Raises:
        ValueError: The confidence is not between 0 and 1.
    """
    check_confidence(confidence)
    # The lower tail keeps digits that 1 - (1 - confidence) / 2 would round away.
    return -NormalDist().inv_cdf((1.0 - confidence) / 2.0)


def wilson(k: float, n: float, confidence: float = 0.95) -> Interval | None:
    """Wilson's score interval for k events in n trials.

    (k + z^2/2 -+ z sqrt(k (n-k) / n + z^2/4)) / (n + z^2), with the ends exactly 0 at k = 0 and
    exactly 1 at k = n. Source: Wilson 1927; Brown, Cai & DasGupta 2001, Statistical Science 16.

    Args:
        k: Events, 0 <= k <= n. Real values are allowed (effective sample sizes).
        n: Trials, n >= 0.
        confidence: Two-sided, in (0, 1).

    Returns:
        The interval, or None when n is 0.

    Raises:
        ValueError: Impossible counts or confidence.

    Example:
        >>> [round(end, 6) for end in wilson(8, 10)]
        [0.490162, 0.943318]
    """
    check_counts(k, 0, n)
    return wilson_at(k, n, two_sided_z(confidence)) if n else None


def wilson_at(k: float, n: float, z: float) -> Interval:
    """Wilson's interval for a given normal quantile z >= 0 and n > 0 (see `wilson`)."""
    square = z * z
    centre = k + square / 2.0
    spread = z * math.sqrt(max(k * (n - k) / n, 0.0) + square / 4.0)
    lo = 0.0 if k == 0 else max((centre - spread) / (n + square), 0.0)
    hi = 1.0 if k == n else min((centre + spread) / (n + square), 1.0)
    return Interval(lo, hi)


def wilson_with_unresolved(k: int, u: int, n: int, confidence: float = 0.95) -> Interval | None:
    """[Wilson_lo(k, n), Wilson_hi(k + u, n)]: every completion of the unresolved is covered.

    Args:
        k: Events seen.
        u: Cases of which we do not know.
        n: Planned cases, k + u <= n.
        confidence: Two-sided, in (0, 1).

    Returns:
        The interval, or None when n is 0.

    Raises:
        ValueError: Impossible counts or confidence.
    """
    check_counts(k, u, n)
    z = two_sided_z(confidence)
    if n == 0:
        return None
    return Interval(wilson_at(k, n, z).lo, wilson_at(k + u, n, z).hi)


def identification_bounds(k: int, u: int, n: int) -> Interval | None:
    """[k/n, (k+u)/n]: what the share would be if no unresolved case, or every one, were an event.

    Raises:
        ValueError: Impossible counts.
    """
    check_counts(k, u, n)
    return Interval(k / n, (k + u) / n) if n else None
