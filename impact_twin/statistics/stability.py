"""Stable, variable or undetermined; and what a stable pair can't exclude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from impact_twin.statistics.intervals import check_confidence
from impact_twin.statistics.table import UNRESOLVED

STABLE = "stable"
VARIABLE = "variable"
UNDETERMINED = "undetermined"
STABLE_MINIMUM = 5
"""Fewest planned trials for the word `stable`."""


@dataclass(frozen=True)
class StabilityBound:
    """What n identical outcomes can't exclude.

    Attributes:
        n: Identical outcomes, all that were planned.
        per_pair: Largest probability of any other outcome that the trials don't exclude at
            `confidence`, for this pair by itself.
        joint: The same with alpha divided by `pairs`, so that all pairs' bounds hold together.
        pairs: Number of pairs that share alpha in `joint`.
        confidence: One-sided.
    """

    n: int
    per_pair: float
    joint: float
    pairs: int
    confidence: float


def stability_label(class_counts: Sequence[int]) -> str:
    """The label of a pair from the counts of its outcome classes.

    `variable`: two resolved classes occurred, at any n. `stable`: all planned trials share one
    resolved class and n >= 5. Otherwise `undetermined`.

    Args:
        class_counts: Shape (9,), in the order of `OUTCOME_CLASSES`; their sum is the planned n.
    """
    resolved = [count for code, count in enumerate(class_counts) if code != UNRESOLVED and count]
    if len(resolved) >= 2:
        return VARIABLE
    n = sum(class_counts)
    return STABLE if resolved == [n] and n >= STABLE_MINIMUM else UNDETERMINED


def other_outcome_bound(n: int, confidence: float = 0.95, pairs: int = 1) -> float:
    """The exact one-sided bound 1 - (alpha / pairs)^(1/n) after n identical outcomes.

    Clopper-Pearson's upper limit for 0 events in n. If any other outcome had a larger probability,
    n identical outcomes of the class at hand would occur with probability below alpha. (The class
    is named after it was seen: at n = 5 the real error is a little above alpha, from n = 10 on the
    difference vanishes; see `posthoc_bound`.)

    Args:
        n: Identical outcomes, >= 1.
        confidence: One-sided, in (0, 1); alpha is 1 - confidence.
        pairs: Bounds that must hold together (Bonferroni), >= 1.

    Raises:
        ValueError: n or pairs below 1, or an impossible confidence.

    Example:
        >>> round(other_outcome_bound(10), 3)
        0.259
    """
    check_confidence(confidence)
    if n < 1 or pairs < 1:
        raise ValueError(f"n = {n} and pairs = {pairs} must be at least 1")
    return float(1.0 - ((1.0 - confidence) / pairs) ** (1.0 / n))


def posthoc_bound(n: int, confidence: float = 0.95) -> float:
    """The bound when any class, not one named in advance, may be the one that repeats.

    The largest eps for which some distribution with commonest probability 1 - eps gives n identical
    outcomes with probability alpha or more. For a given commonest probability m, the all-identical
    probability is largest with floor(1/m) outcomes at m and the rest on one more.

    Args:
        n: Identical outcomes, >= 2.
        confidence: One-sided, in (0, 1).

    Raises:
        ValueError: n below 2 or an impossible confidence.
    """
    check_confidence(confidence)
    if n < 2:
        raise ValueError(f"n = {n} must be at least 2")
    lo, hi = 0.0, 1.0
    while True:  # the all-identical probability rises with m
        middle = (lo + hi) / 2.0
        if middle in (lo, hi):
            return 1.0 - hi
        likely = all_identical(middle, n) >= 1.0 - confidence
        lo, hi = (lo, middle) if likely else (middle, hi)


def all_identical(commonest: float, n: int) -> float:
    """Largest probability of n identical outcomes when none has more than this probability.

    Args:
        commonest: In (0, 1].
        n: Outcomes, >= 1.
    """
    whole = int(1.0 / commonest)
    rest = max(1.0 - whole * commonest, 0.0)
    return whole * commonest**n + rest**n


def stability_bound(n: int, confidence: float, pairs: int) -> StabilityBound:
    """Both bounds of a stable pair with n trials, in a suite of `pairs` pairs."""
    return StabilityBound(
        n=n,
        per_pair=other_outcome_bound(n, confidence),
        joint=other_outcome_bound(n, confidence, pairs),
        pairs=pairs,
        confidence=confidence,
    )
