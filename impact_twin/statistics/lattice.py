"""Exact distributions of resampled means, as integer counts on a lattice of fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

EXACT_BITS = 30_000_000
"""Largest packed polynomial, in bits, that is still multiplied out (about three seconds)."""


class TooLargeError(ValueError):
    """The exact distribution would be too large; sample instead."""


@dataclass(frozen=True)
class Lattice:
    """A distribution on first, first + step, first + 2 step, ...

    Attributes:
        first: The smallest lattice point.
        step: Distance of neighbouring points, > 0.
        counts: Equally likely ways to reach each point; their sum is the number of all ways.
    """

    first: Fraction
    step: Fraction
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of equally likely ways, e.g. n^n for n resampled values."""
        return sum(self.counts)

    def support(self) -> list[tuple[Fraction, int]]:
        """The points that can be reached, with their counts, ascending."""
        return [
            (self.first + place * self.step, count)
            for place, count in enumerate(self.counts)
            if count
        ]

    def mean(self) -> Fraction:
        """The distribution's mean, which is the mean of the values that were resampled."""
        places = sum(place * count for place, count in enumerate(self.counts))
        return self.first + self.step * Fraction(places, self.total)

    def quantile(self, level: Fraction) -> Fraction:
        """The smallest point whose cumulative probability reaches the level (R's type 1).

        Args:
            level: In (0, 1], exact.
        """
        needed = level * self.total
        reached = 0
        for place, count in enumerate(self.counts):
            reached += count
            if count and reached >= needed:
                return self.first + place * self.step
        raise ValueError(f"level {level} is above 1")


def resampled_mean(values: Sequence[Fraction]) -> Lattice:
    """The exact distribution of the mean of n draws with replacement from n values.

    The n-fold convolution of the values' counts: the n-th power of their polynomial, with the
    polynomial packed into one integer so that Python's big multiplication does the work.

    Args:
        values: One or more fractions; repeats of a cluster are collapsed before.

    Raises:
        TooLargeError: The packed polynomial would exceed `EXACT_BITS`.
    """
    n = len(values)
    low = min(values)
    step = _common_step([value - low for value in values])
    places = [int((value - low) / step) for value in values]
    size = n * max(places) + 1
    width = _width(n**n, size)
    counts = [0] * (max(places) + 1)
    for place in places:
        counts[place] += 1
    power = _packed(counts, width) ** n
    return Lattice(low, step / n, tuple(_unpacked(power, width, size)))


def weighted_sum(parts: Sequence[Lattice], weights: Sequence[Fraction]) -> Lattice:
    """The exact distribution of a weighted sum of independent lattice variables.

    Args:
        parts: One or more distributions.
        weights: One positive weight for each.

    Raises:
        TooLargeError: The common lattice would be too fine.
    """
    first = sum((w * part.first for part, w in zip(parts, weights, strict=True)), Fraction(0))
    steps = [w * part.step for part, w in zip(parts, weights, strict=True)]
    step = _common_step(steps)
    strides = [int(own / step) for own in steps]
    size = 1 + sum(
        stride * (len(part.counts) - 1) for part, stride in zip(parts, strides, strict=True)
    )
    width = _width(math.prod(part.total for part in parts), size)
    product = 1
    for part, stride in zip(parts, strides, strict=True):
        product *= _packed(part.counts, width * stride)
    return Lattice(first, step, tuple(_unpacked(product, width, size)))


def _common_step(differences: Sequence[Fraction]) -> Fraction:
    """The largest fraction of which all differences are whole multiples; 1 when all are 0."""
    scale = math.lcm(*(difference.denominator for difference in differences))
    whole = math.gcd(*(int(difference * scale) for difference in differences))
    return Fraction(whole, scale) if whole else Fraction(1)


def _width(largest: int, size: int) -> int:
    """Bytes that hold any coefficient."""
    width = largest.bit_length() // 8 + 1
    if width * 8 * size > EXACT_BITS:
        raise TooLargeError(f"{size} points of {width} bytes are too many")
    return width


def _packed(counts: Sequence[int], width: int) -> int:
    return int.from_bytes(b"".join(c.to_bytes(width, "little") for c in counts), "little")


def _unpacked(packed: int, width: int, size: int) -> list[int]:
    data = packed.to_bytes(width * size, "little")
    return [
        int.from_bytes(data[place : place + width], "little")
        for place in range(0, width * size, width)
    ]
