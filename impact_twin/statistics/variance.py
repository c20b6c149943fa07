"""Where variation comes from: between the pairs, or between runs of one pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class VarianceComponents:
    """A one-way decomposition of 0/1 outcomes of I pairs with K trials each.

    Attributes:
        between_mean_square: MSB = K sum (p_i - p)^2 / (I - 1).
        within_mean_square: MSW = sum K p_i (1 - p_i) / (I (K - 1)): unbiased for the variance of
            one run given its pair.
        between: Unbiased variance of the pairs' rates, (MSB - MSW) / K; may be negative.
        icc: (MSB - MSW) / (MSB + (K - 1) MSW): how alike runs of one pair are; None when nothing
            varied at all.
        standard_error: Of the mean over exactly these pairs, sqrt(sum p_i (1 - p_i) / (K - 1)) / I.
    """

    between_mean_square: float
    within_mean_square: float
    between: float
    icc: float | None
    standard_error: float


def variance_components(counts: Sequence[int], n: int) -> VarianceComponents | None:
    """Split the variance of one rate.

    Source: the law of total variance; Miller 2024, arXiv:2411.00640, section 3.

    Args:
        counts: Events of each pair, each 0 to n.
        n: Trials of each pair, all resolved.

    Returns:
        The components, or None with fewer than two pairs or two trials.

    Raises:
        ValueError: A count outside 0 to n.
    """
    pairs = len(counts)
    if any(not 0 <= count <= n for count in counts):
        raise ValueError(f"counts {list(counts)} are not all between 0 and {n}")
    if pairs < 2 or n < 2:
        return None
    shares = [count / n for count in counts]
    mean = math.fsum(shares) / pairs
    spread = math.fsum(share * (1.0 - share) for share in shares)
    between = n * math.fsum((share - mean) ** 2 for share in shares) / (pairs - 1)
    within = n * spread / (pairs * (n - 1))
    total = between + (n - 1) * within
    return VarianceComponents(
        between_mean_square=between,
        within_mean_square=within,
        between=(between - within) / n,
        icc=(between - within) / total if total else None,
        standard_error=math.sqrt(spread / (n - 1)) / pairs,
    )
