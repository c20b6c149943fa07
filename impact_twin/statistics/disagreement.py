"""Run-to-run disagreement inside a pair, and how many different results were seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from impact_twin.statistics.intervals import Interval
from impact_twin.statistics.table import BoolColumn, IntColumn


def disagreement(counts: Sequence[int]) -> float | None:
    """Unbiased estimate of the probability that two runs give different results.

    D = 1 - sum n_c (n_c - 1) / (n (n - 1)): the share of unordered pairs of runs that differ.

    Args:
        counts: How often each result occurred, each >= 0.

    Returns:
        D in [0, 1], or None with fewer than two runs.

    Example:
        >>> disagreement([5, 5]) == 5 / 9
        True
    """
    n = sum(counts)
    if n < 2:
        return None
    same = sum(count * (count - 1) for count in counts)
    return (n * (n - 1) - same) / (n * (n - 1))


def disagreement_bounds(counts: Sequence[int], unresolved: int) -> Interval | None:
    """Smallest and largest D over every way to fill in the unresolved runs.

    Least when all of them join the commonest result, most when they level the results (every
    result in `counts`, seen or not, may take them).

    Args:
        counts: How often each possible result occurred, zeros included.
        unresolved: Runs whose result is not known, >= 0.

    Returns:
        The bounds, or None with fewer than two planned runs.

    Raises:
        ValueError: There are unresolved runs but no possible result.
    """
    if sum(counts) + unresolved < 2:
        return None
    if not counts:
        raise ValueError("no possible result is named")
    filled = sorted(counts)
    filled[-1] += unresolved
    least = disagreement(filled)
    most = disagreement(_levelled(list(counts), unresolved))
    assert least is not None
    assert most is not None
    return Interval(least, most)


def _levelled(counts: list[int], extra: int) -> list[int]:
    """Pour `extra` runs over the rarest results until they are level."""
    counts.sort()
    filled = 1
    while extra and filled < len(counts):
        step = min(extra, filled * (counts[filled] - counts[0]))
        share, rest = divmod(step, filled)
        for place in range(filled):
            counts[place] += share + (place >= filled - rest)
        extra -= step
        filled += 1
    share, rest = divmod(extra, len(counts))
    return [count + share + (place < rest) for place, count in enumerate(counts)]


def code_counts(
    pair: IntColumn, codes: IntColumn, pairs: int, mask: BoolColumn
) -> list[npt.NDArray[np.int64]]:
    """How often each code occurs within each pair.

    Args:
        pair: Pair of each row, shape (rows,).
        codes: Code of each row, -1 for none, shape (rows,).
        pairs: Number of pairs.
        mask: Rows to count, shape (rows,).

    Returns:
        For each pair, the positive counts of its codes (in code order), without those of -1.
    """
    chosen = mask & (codes >= 0)
    rows, values = pair[chosen], codes[chosen]
    if not len(values):
        return [np.zeros(0, dtype=np.int64) for _ in range(pairs)]
    width = int(values.max()) + 1
    if pairs * width <= 16 * len(values) + 1024:
        table = np.bincount(rows * width + values, minlength=pairs * width).reshape(pairs, width)
        return [line[line > 0].astype(np.int64) for line in table]
    return [
        np.unique(values[rows == p], return_counts=True)[1].astype(np.int64) for p in range(pairs)
    ]
