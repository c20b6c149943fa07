"""attack@k and pass^k: at least one event in k runs, and k events in k runs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

from impact_twin.statistics.intervals import Interval, wilson_with_unresolved

KS: tuple[int, ...] = (1, 2, 3, 5, 10)
"""The k that a report shows, as far as n reaches."""


@dataclass(frozen=True)
class RepeatedRate:
    """The estimate for one k.

    Attributes:
        k: Runs looked at together.
        bounds: Unbiased estimates from the count seen and from the count if every unresolved case
            were an event; equal when nothing is unresolved.
        interval: Image of Wilson's interval under p -> 1 - (1-p)^k or p -> p^k; None when withheld.
    """

    k: int
    bounds: Interval
    interval: Interval | None


def at_least_one(c: int, n: int, k: int) -> float:
    """Unbiased estimate of the probability of at least one event in k runs.

    1 - C(n-c, k) / C(n, k). Source: Chen et al. 2021, arXiv:2107.03374.

    Args:
        c: Events, 0 <= c <= n.
        n: Runs.
        k: Runs looked at together, 1 <= k <= n.

    Raises:
        ValueError: Numbers outside their domain.

    Example:
        >>> at_least_one(1, 5, 2)
        0.4
    """
    _check(c, n, k)
    return float(1 - Fraction(comb(n - c, k), comb(n, k)))


def all_of_k(c: int, n: int, k: int) -> float:
    """Unbiased estimate of the probability that all of k runs are events: C(c, k) / C(n, k).

    Source: tau-bench's pass^k (Yao et al. 2024, arXiv:2406.12045). Domains as `at_least_one`.

    Raises:
        ValueError: Numbers outside their domain.
    """
    _check(c, n, k)
    return float(Fraction(comb(c, k), comb(n, k)))


def at_least_one_image(interval: Interval, k: int) -> Interval:
    """The interval of 1 - (1-p)^k from an interval of p (increasing, so its coverage is kept)."""
    return Interval(1.0 - (1.0 - interval.lo) ** k, 1.0 - (1.0 - interval.hi) ** k)


def all_of_k_image(interval: Interval, k: int) -> Interval:
    """The interval of p^k from an interval of p (increasing, so its coverage is kept)."""
    return Interval(interval.lo**k, interval.hi**k)


def attack_at_k(
    c: int, u: int, n: int, confidence: float, *, withheld: bool = False
) -> tuple[RepeatedRate, ...]:
    """attack@k for each k of `KS` that n reaches.

    Args:
        c: Events seen.
        u: Unresolved cases, c + u <= n.
        n: Planned runs.
        confidence: Two-sided.
        withheld: Leave the intervals out (the runs are copies of each other).
    """
    interval = None if withheld else wilson_with_unresolved(c, u, n, confidence)
    return tuple(
        RepeatedRate(
            k,
            Interval(at_least_one(c, n, k), at_least_one(c + u, n, k)),
            interval and at_least_one_image(interval, k),
        )
        for k in KS
        if k <= n
    )


def pass_hat_k(
    c: int, u: int, n: int, confidence: float, *, withheld: bool = False
) -> tuple[RepeatedRate, ...]:
    """pass^k for each k of `KS` that n reaches (arguments as `attack_at_k`)."""
    interval = None if withheld else wilson_with_unresolved(c, u, n, confidence)
    return tuple(
        RepeatedRate(
            k,
            Interval(all_of_k(c, n, k), all_of_k(c + u, n, k)),
            interval and all_of_k_image(interval, k),
        )
        for k in KS
        if k <= n
    )


def _check(c: int, n: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"impossible numbers: {c} events of {n}, k = {k}")
