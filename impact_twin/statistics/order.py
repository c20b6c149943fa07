"""Does the order of execution matter? Drift over the run, and which twin came first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from impact_twin.statistics.conditional import conditional_test, holm
from impact_twin.statistics.difference import TwoGroups
from impact_twin.statistics.ranksum import Stratum, two_sided_p
from impact_twin.statistics.rates import rate_masks
from impact_twin.statistics.table import BoolColumn, ObservationTable

ORDER_RATES: tuple[str, ...] = ("attack_success", "secure_utility")

RISING = "rising"
FALLING = "falling"
LEVEL = "level"


@dataclass(frozen=True)
class TrendTest:
    """Whether one rate rises or falls over the run.

    Attributes:
        rate: `attack_success` or `secure_utility`.
        n: Resolved poisoned cases looked at.
        position_sum: Sum over the pairs of the events' positions within their pair, from 1.
        null_mean: Its mean when order doesn't matter.
        direction: `rising`, `falling` or `level`.
        p_value: Two-sided.
        p_holm: The same after Holm's correction over the rates.
        method: `exact`, or `normal approximation` for very long runs.
    """

    rate: str
    n: int
    position_sum: int
    null_mean: float
    direction: str
    p_value: float
    p_holm: float
    method: str


@dataclass(frozen=True)
class TwinOrderTest:
    """Whether a rate differs by which twin of a pair-trial started first.

    Attributes:
        rate: `attack_success` or `secure_utility`.
        poisoned_first: (events, cases) where the poisoned twin started first.
        clean_first: (events, cases) where the clean twin did.
        p_value: Two-sided, exact given the pairs' margins.
        p_holm: The same after Holm's correction over the rates.
    """

    rate: str
    poisoned_first: tuple[int, int]
    clean_first: tuple[int, int]
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class OrderEffects:
    """All order tests of one report; each family has its own Holm correction."""

    trends: tuple[TrendTest, ...]
    twin_order: tuple[TwinOrderTest, ...]


def order_effects(table: ObservationTable) -> OrderEffects:
    """Test for drift over start order and for an effect of twin order.

    Only resolved poisoned cases count. The trend test permutes events among the start positions
    within each pair, so that a difference between pairs can't look like a trend. Cases without a
    start keep the order of their trials, after the others; the twin-order test leaves them out.

    Args:
        table: The observations; `start` is read for its order only.
    """
    return OrderEffects(_trends(table), _twin_order(table))


def _trends(table: ObservationTable) -> tuple[TrendTest, ...]:
    position = _positions(table)
    found = []
    for rate in ORDER_RATES:
        events = rate_masks(table, rate)[0] & (position > 0)
        strata = [
            Stratum(int(k), int(n))
            for k, n in zip(
                _per_pair(table, events), _per_pair(table, table.poisoned.resolved), strict=True
            )
        ]
        total = int(position[events].sum())
        found.append((rate, strata, total, *two_sided_p(strata, total)))
    adjusted = holm([line[3] for line in found])
    return tuple(
        TrendTest(
            rate=rate,
            n=sum(stratum.n for stratum in strata),
            position_sum=total,
            null_mean=sum(stratum.mean for stratum in strata),
            direction=_direction(total - sum(stratum.mean for stratum in strata)),
            p_value=p_value,
            p_holm=p_holm,
            method=method,
        )
        for (rate, strata, total, p_value, method), p_holm in zip(found, adjusted, strict=True)
    )


def _positions(table: ObservationTable) -> npt.NDArray[np.int64]:
    """Position of each resolved poisoned case within its pair, from 1; 0 for the others."""
    position = np.zeros(len(table), dtype=np.int64)
    for place in range(len(table.pairs)):
        rows = np.flatnonzero((table.pair == place) & table.poisoned.resolved)
        rows = rows[np.argsort(table.trial[rows], kind="stable")]
        rows = rows[np.argsort(table.poisoned.start[rows], kind="stable")]
        position[rows] = np.arange(1, len(rows) + 1)
    return position


def _direction(excess: float) -> str:
    if excess == 0.0:
        return LEVEL
    return RISING if excess > 0 else FALLING


def _twin_order(table: ObservationTable) -> tuple[TwinOrderTest, ...]:
    poisoned, clean = table.poisoned, table.clean
    first = poisoned.resolved & (poisoned.start < clean.start)
    second = poisoned.resolved & (poisoned.start > clean.start)
    sizes = (_per_pair(table, first), _per_pair(table, second))
    found = []
    for rate in ORDER_RATES:
        seen = rate_masks(table, rate)[0]
        events = (_per_pair(table, seen & first), _per_pair(table, seen & second))
        strata = [
            TwoGroups(int(k_a), int(n_a), int(k_b), int(n_b))
            for k_a, n_a, k_b, n_b in zip(events[0], sizes[0], events[1], sizes[1], strict=True)
        ]
        found.append((rate, strata, conditional_test(strata).p_value))
    adjusted = holm([p_value for _, _, p_value in found])
    return tuple(
        TwinOrderTest(
            rate=rate,
            poisoned_first=(sum(s.k_a for s in strata), sum(s.n_a for s in strata)),
            clean_first=(sum(s.k_b for s in strata), sum(s.n_b for s in strata)),
            p_value=p_value,
            p_holm=p_holm,
        )
        for (rate, strata, p_value), p_holm in zip(found, adjusted, strict=True)
    )


def _per_pair(table: ObservationTable, mask: BoolColumn) -> npt.NDArray[np.int64]:
    return np.bincount(table.pair[mask], minlength=len(table.pairs)).astype(np.int64)
