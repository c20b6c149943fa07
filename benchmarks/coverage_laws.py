"""What the coverage tables share: true rates, exact laws, and how a table is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import comb

import numpy as np
import numpy.typing as npt

from impact_twin.statistics.intervals import two_sided_z

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
KS = (5, 10, 20, 50)
SEED = 20_250_601
TINY = 1e-12
DIP = 0.93

VECTORS: dict[str, tuple[float, ...]] = {
    "A mixed": (0.05, 0.5, 0.95, 1.0, 0.2),
    "B all 0.5": (0.5,) * 5,
    "C all 0.9": (0.9,) * 5,
    "D all or nothing": (0.0, 0.0, 1.0, 1.0, 1.0),
    "E strong": (0.8, 0.9, 0.95, 1.0, 1.0),
    "F spread": (0.1, 0.3, 0.5, 0.7, 0.9),
    "G one flipper": (0.0, 0.0, 0.0, 0.0, 0.5),
    "H one rare": (1.0, 1.0, 1.0, 1.0, 0.9),
    "I all rare": (0.02,) * 5,
    "J nearly perfect": (0.98, 0.98, 0.98, 0.98, 0.6),
}


@cache
def binomial(n: int, p: float) -> Floats:
    """Probabilities of 0..n events."""
    return np.array([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


@cache
def suite_law(shares: tuple[float, ...], n: int) -> tuple[Ints, Ints, Floats]:
    """Law of (sum of counts, sum of squared counts) over pairs with n trials each, by convolution.

    Both suite intervals depend on the counts through these two sums only.
    """
    law = np.ones((1, 1))
    for share in shares:
        weights = binomial(n, share)
        grown = np.zeros((law.shape[0] + n, law.shape[1] + n * n))
        for k in np.flatnonzero(weights):
            grown[k : k + law.shape[0], k * k : k * k + law.shape[1]] += weights[k] * law
        law = grown
    sums, squares = np.nonzero(law)
    return sums, squares, law[sums, squares]


def suite_ends(sums: Ints, squares: Ints, n: int, pairs: int, fixed: bool) -> tuple[Floats, Floats]:
    """Ends of the pooled or the fixed-suite interval (a test holds them to the tool's)."""
    total = float(pairs * n)
    share = sums / total
    size = np.full(len(sums), total)
    if fixed:
        shrunk = (sums + pairs / 2) / (n + 1)
        within = (shrunk - (squares + sums + pairs / 4) / (n + 1) ** 2) / pairs
        inner = (sums > 0) & (sums < total)
        deff = np.ones(len(sums))
        np.divide(within, share * (1 - share), out=deff, where=inner)
        size = total / np.minimum(deff, 1.0)
    square = two_sided_z(CONFIDENCE) ** 2
    centre = share * size + square / 2
    spread = np.sqrt(square * (share * (1 - share) * size + square / 4))
    low = np.where(sums == 0, 0.0, (centre - spread) / (size + square))
    high = np.where(sums == total, 1.0, (centre + spread) / (size + square))
    return low, high


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(value: float) -> str:
    """A probability in percent with one decimal, exact 0 and 1 without."""
    return f"{100 * value:.0f}" if value in (0.0, 1.0) else f"{100 * value:.1f}"


def dips(cells: dict[str, float], level: float = DIP) -> str:
    """A sentence that names every cell below the level, lowest first."""
    low = sorted((value, name) for name, value in cells.items() if value < level)
    if not low:
        return f"No cell is below {percent(level)} %."
    named = "; ".join(f"{name} ({100 * value:.2f} %)" for value, name in low)
    return f"Below {percent(level)} %: {named}."


def peaks(cells: dict[str, float], level: float) -> str:
    """A sentence that names every cell above the level, highest first."""
    high = sorted(((value, name) for name, value in cells.items() if value > level), reverse=True)
    if not high:
        return f"No cell is above {percent(level)} %."
    named = "; ".join(f"{name} ({100 * value:.2f} %)" for value, name in high)
    return f"Above {percent(level)} %: {named}."
