"""The fixed-suite interval: Wilson's interval on the effective n of a stratified sample."""

from __future__ import annotations

from collections.abc import Sequence

from impact_twin.statistics.intervals import Interval, check_counts, two_sided_z, wilson_at


def effective_n(counts: Sequence[int], n: int) -> float:
    """Effective sample size of I pairs with n trials each.

    The pooled binomial variance counts the spread between the pairs, which a fixed suite doesn't
    have. deff = min(1, mean(q_i (1 - q_i)) / (p (1 - p))) with q_i = (k_i + 1/2) / (n + 1) and p
    the pooled share; deff = 1 at p = 0 or 1; the effective n is I n / deff. Shrinking q_i keeps
    deff away from 0 when each pair is all or nothing. Source: Wilson with an effective n, as R's
    `survey::svyciprop(method = "wilson")` does.

    Args:
        counts: Events of each pair, each 0 to n.
        n: Trials of each pair, n >= 1.

    Returns:
        The effective sample size, at least I n.
    """
    total = len(counts) * n
    events = sum(counts)
    if events in (0, total):
        return float(total)
    shrunk = [(k + 0.5) / (n + 1.0) for k in counts]
    within = sum(q * (1.0 - q) for q in shrunk) / len(shrunk)
    share = events / total
    return total / min(1.0, within / (share * (1.0 - share)))


def fixed_suite(
    counts: Sequence[int],
    unresolved: Sequence[int],
    trials: Sequence[int],
    confidence: float = 0.95,
) -> Interval | None:
    """Interval for the mean rate of exactly these pairs over repeated executions.

    The lower end takes the counts k_i, the upper end k_i + u_i, each with its own effective n. It
    is approximate; docs/statistics.md has its coverage.

    Args:
        counts: Events seen of each pair, shape (pairs,).
        unresolved: Unresolved cases of each pair, shape (pairs,).
        trials: Planned cases of each pair, shape (pairs,).
        confidence: Two-sided, in (0, 1).

    Returns:
        The interval, or None when there is nothing to measure or the pairs have unequal n.

    Raises:
        ValueError: Impossible counts or confidence, or sequences of unequal length.
    """
    z = two_sided_z(confidence)
    for k, u, n in zip(counts, unresolved, trials, strict=True):
        check_counts(k, u, n)
    if len(set(trials)) != 1 or trials[0] == 0:
        return None
    upper = [k + u for k, u in zip(counts, unresolved, strict=True)]
    return Interval(_wilson(counts, trials[0], z).lo, _wilson(upper, trials[0], z).hi)


def _wilson(counts: Sequence[int], n: int, z: float) -> Interval:
    total = len(counts) * n
    events = sum(counts)
    if events in (0, total):
        return wilson_at(events, total, z)
    size = effective_n(counts, n)
    return wilson_at(events / total * size, size, z)
