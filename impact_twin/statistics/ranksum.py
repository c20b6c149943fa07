"""The exact null distribution of a sum of positions, over strata."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

EXACT_STEPS = 40_000_000
"""Largest number of vector elements worked through for the exact distribution (about a second)."""

_CHUNK = 100_000
EXACT = "exact"
NORMAL = "normal approximation"


class Stratum(NamedTuple):
    """k events among n ordered trials."""

    k: int
    n: int

    @property
    def mean(self) -> float:
        """Null mean of the sum of the events' positions 1 to n."""
        return self.k * (self.n + 1) / 2.0

    @property
    def variance(self) -> float:
        """Null variance of that sum."""
        return self.k * (self.n - self.k) * (self.n + 1) / 12.0


def two_sided_p(strata: Sequence[Stratum], position_sum: int) -> tuple[float, str]:
    """Probability of a sum of positions at least as far from its mean as the one seen.

    Within each stratum every choice of k of the n positions is equally likely. The distribution is
    symmetric, so no choice between two-sided definitions arises.

    Args:
        strata: Events and trials of each stratum.
        position_sum: The sum over all strata of the events' positions, which count from 1.

    Returns:
        The p-value and the method: `exact`, or `normal approximation` (without a continuity
        correction) when the exact distribution would take too long.
    """
    mean = math.fsum(stratum.mean for stratum in strata)
    distance = abs(position_sum - mean)
    varied = [stratum for stratum in strata if 0 < stratum.k < stratum.n]
    if not varied or distance == 0.0:
        return 1.0, EXACT
    reach = sum(k * (n - k) for k, n in varied)
    if reach * sum(min(k, n - k) for k, n in varied) // 2 > EXACT_STEPS:
        spread = math.sqrt(math.fsum(stratum.variance for stratum in varied))
        return 2.0 * NormalDist().cdf(-distance / spread), NORMAL
    masses = position_sum_masses(varied)
    # Distances from reach / 2 are whole or half numbers, so half a unit of slack decides no tie.
    far = np.abs(np.arange(len(masses)) - reach / 2.0) >= distance - 0.25
    return min(float(masses[far].sum()), 1.0), EXACT


def position_sum_masses(strata: Sequence[Stratum]) -> npt.NDArray[np.float64]:
    """Probabilities of the position sum above its minimum, shape (sum k (n - k) + 1,).

    The generating function of one stratum is a Gaussian binomial coefficient,
    prod_i (1 - q^(n-k+i)) / (1 - q^i) over i = 1..k. It is evaluated at the L-th roots of unity for
    a prime L above the range, so that no factor vanishes; strata multiply, and one inverse FFT
    gives the probabilities to about 1e-15 (the textbook recursion cancels badly from n = 400 on).
    """
    reach = sum(k * (n - k) for k, n in strata)
    length = _prime_above(max(reach + 1, *(n for _, n in strata)))
    roots = np.arange(length // 2 + 1, dtype=np.int64)
    # One turn of the sine repeats with the sign turned: two make a table for any multiple.
    sines = np.sin(np.pi * np.arange(2 * length) / length)
    magnitude = np.ones(len(roots))
    rows = max(1, _CHUNK // len(roots))
    for k, n in strata:
        few = min(k, n - k)
        for first in range(1, few + 1, rows):
            i = np.arange(first, min(first + rows, few + 1))[:, None]
            top = sines[((n - few + i) * roots[1:]) % (2 * length)]
            bottom = sines[(i * roots[1:]) % (2 * length)]
            magnitude[1:] *= (top / bottom * (i / (n - few + i))).prod(axis=0)
    shift = (reach * roots) % (2 * length)
    transform = magnitude * np.exp(-1j * np.pi * shift / length)
    masses = np.fft.irfft(transform, length)[: reach + 1]
    return np.maximum(masses, 0.0)


def _prime_above(number: int) -> int:
    candidate = max(number, 2) + 1
    while any(candidate % d == 0 for d in range(2, math.isqrt(candidate) + 1)):
        candidate += 1
    return candidate
