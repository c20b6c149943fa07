"""Exact tests given the margins: Fisher's test and its stratified form, and Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from impact_twin.statistics.difference import TwoGroups

# Two-sided tests add every table as improbable as the one seen; this much slack absorbs rounding
# (R's fisher.test and mantelhaen.test do the same).
_TIE = 1.0 + 1e-7
_NEGLIGIBLE = 1e-40


@dataclass(frozen=True)
class ConditionalTest:
    """An exact test of a common odds ratio of 1, given every stratum's margins.

    Attributes:
        events: Events in group A, over all strata.
        mean: Their mean under the null hypothesis.
        p_value: Two-sided: the probability of all totals no likelier than the one seen.
        p_fewer: One-sided probability of this total or fewer.
        p_more: One-sided probability of this total or more.
    """

    events: int
    mean: float
    p_value: float
    p_fewer: float
    p_more: float


def conditional_test(tables: Sequence[TwoGroups]) -> ConditionalTest:
    """The exact conditional Cochran-Mantel-Haenszel test; Fisher's exact test for one stratum.

    The null distribution of group A's events is the convolution of the strata's hypergeometric
    distributions. Empty groups are allowed and say nothing.

    Args:
        tables: One stratum each, in any order.
    """
    first, weights = 0, np.ones(1)
    for table in tables:
        low, masses = _hypergeometric(table)
        first += low
        weights = np.convolve(weights, masses)
    weights = weights / weights.sum()
    events = sum(table.k_a for table in tables)
    place = events - first
    inside = 0 <= place < len(weights)
    own = float(weights[place]) if inside else 0.0
    return ConditionalTest(
        events=events,
        mean=first + float(weights @ np.arange(len(weights))),
        p_value=min(float(weights[weights <= own * _TIE].sum()), 1.0),
        p_fewer=min(float(weights[: max(place + 1, 0)].sum()), 1.0),
        p_more=min(float(weights[max(place, 0) :].sum()), 1.0),
    )


def fisher(table: TwoGroups) -> float:
    """The two-sided p-value of Fisher's exact test.

    Example:
        >>> round(fisher(TwoGroups(9, 10, 2, 10)), 6)
        0.005477
    """
    return conditional_test([table]).p_value


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given.

    Source: Holm 1979, Scandinavian Journal of Statistics 6:65-70.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        running = max(running, min((len(order) - rank) * p_values[place], 1.0))
        adjusted[place] = running
    return adjusted


def _hypergeometric(table: TwoGroups) -> tuple[int, npt.NDArray[np.float64]]:
    """Group A's events given the margins: the smallest value kept, and the masses from there on.

    Ratios of neighbouring masses are multiplied outward from the mode, and tails below 1e-40 of it
    are cut, so that neither overflow nor a million trials is a trouble.
    """
    events, total = table.k_a + table.k_b, table.n_a + table.n_b
    low, high = max(0, events - table.n_b), min(events, table.n_a)
    mode = (events + 1) * (table.n_a + 1) // (total + 2)
    mode = min(max(mode, low), high)
    up = np.arange(mode + 1, high + 1, dtype=np.float64)
    rising = (table.n_a - up + 1) * (events - up + 1) / (up * (table.n_b - events + up))
    down = np.arange(mode, low, -1, dtype=np.float64)
    falling = down * (table.n_b - events + down) / ((table.n_a - down + 1) * (events - down + 1))
    above, below = np.cumprod(rising), np.cumprod(falling)
    above, below = above[above > _NEGLIGIBLE], below[below > _NEGLIGIBLE]
    masses = np.concatenate([below[::-1], [1.0], above])
    return mode - len(below), masses / masses.sum()
