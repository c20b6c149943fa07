"""How many trials a question needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from impact_twin.statistics.intervals import (
    check_confidence,
    two_sided_z,
    wilson_at,
)

LARGEST_N = 10_000_000
SIMULATIONS = 20_000
SEED = 20_250_601


@dataclass(frozen=True)
class PowerEstimate:
    """How likely a comparison of two agents shows their difference.

    Attributes:
        trials: Trials of each agent, that is, runs of each pair.
        power: Simulated probability that the stratified test rejects.
        standard_error: Its Monte Carlo standard error.
        simulations: Number of seeded simulations behind it.
    """

    trials: int
    power: float
    standard_error: float
    simulations: int


def n_for_half_width(half_width: float, rate: float = 0.5, confidence: float = 0.95) -> int:
    """Smallest n at which Wilson's interval is no wider than +- half_width.

    At rate 0.5, the worst case, this is ceil(z^2 / (4 h^2) - z^2).

    Args:
        half_width: In (0, 0.5).
        rate: The share expected, in [0, 1].
        confidence: Two-sided, in (0, 1).

    Raises:
        ValueError: Numbers outside their domain, or more than ten million trials needed.

    Example:
        >>> n_for_half_width(0.1)
        93
    """
    z = two_sided_z(confidence)
    _check_open("half_width", half_width, 0.5)
    _check_share("rate", rate)

    def narrow(n: int) -> bool:
        return wilson_at(rate * n, n, z).width / 2.0 <= half_width

    return _smallest(narrow, 1)


def n_for_gate(threshold: float, failures: int = 0, confidence: float = 0.95) -> int:
    """Smallest n at which a gate `rate >= threshold` passes with so many failures.

    The gate compares Wilson's lower end. With no failure this is ceil(z^2 L / (1 - L)).

    Args:
        threshold: In (0, 1).
        failures: Cases that are not events, unresolved ones included, >= 0.
        confidence: Two-sided, in (0, 1).

    Raises:
        ValueError: Numbers outside their domain, or more than ten million trials needed.

    Example:
        >>> n_for_gate(0.8)
        16
    """
    z = two_sided_z(confidence)
    _check_open("threshold", threshold, 1.0)
    _check_whole("failures", failures)

    def passes(n: int) -> bool:
        return wilson_at(n - failures, n, z).lo >= threshold

    return _smallest(passes, failures + 1)


def n_for_upper_gate(threshold: float, events: int = 0, confidence: float = 0.95) -> int:
    """Smallest n at which a gate `rate <= threshold` passes with so many events (see `n_for_gate`).

    Example:
        >>> n_for_upper_gate(0.2)
        16
    """
    return n_for_gate(1.0 - threshold, events, confidence)


def gate_power(n: int, rate: float, threshold: float, confidence: float = 0.95) -> float:
    """Probability that a gate `rate >= threshold` passes with n trials at a true rate.

    Args:
        n: Trials, >= 1, taken as independent with the same rate.
        rate: The true rate, in [0, 1].
        threshold: In (0, 1).
        confidence: Two-sided, in (0, 1).

    Raises:
        ValueError: Numbers outside their domain.
    """
    z = two_sided_z(confidence)
    _check_share("rate", rate)
    _check_open("threshold", threshold, 1.0)
    least = next((k for k in range(n + 1) if wilson_at(k, n, z).lo >= threshold), n + 1)
    return math.fsum(_binomial(k, n, rate) for k in range(least, n + 1))


def n_for_flip_rate(flip_rate: float, deviations: int = 0, confidence: float = 0.95) -> int:
    """Smallest n that certifies that other outcomes are rarer than `flip_rate`.

    The exact one-sided bound (Clopper-Pearson) with so many deviations is at most flip_rate; with
    none it is 1 - alpha^(1/n), what a stable pair is printed with.

    Args:
        flip_rate: Probability of any other outcome to be excluded, in (0, 1).
        deviations: Trials with another outcome, >= 0.
        confidence: One-sided, in (0, 1).

    Raises:
        ValueError: Numbers outside their domain, or more than ten million trials needed.

    Example:
        >>> n_for_flip_rate(0.1), n_for_flip_rate(0.1, deviations=1)
        (29, 46)
    """
    check_confidence(confidence)
    _check_open("flip_rate", flip_rate, 1.0)
    _check_whole("deviations", deviations)
    alpha = 1.0 - confidence

    def certified(n: int) -> bool:
        # The bound is at most the rate just when so few deviations would be this improbable at it.
        return math.fsum(_binomial(k, n, flip_rate) for k in range(deviations + 1)) <= alpha

    return _smallest(certified, deviations + 1)


def trials_to_tell_apart(
    rate_a: float, rate_b: float, power: float = 0.8, pairs: int = 5, confidence: float = 0.95
) -> PowerEstimate:
    """Trials of each agent for a comparison to show their difference with a given power.

    Both agents have one rate on all pairs (a stratified test only gains from spread between them).

    Args:
        rate_a: Rate of the first agent, in [0, 1].
        rate_b: Rate of the second, different from the first.
        power: Wanted probability of a verdict, in (0, 1).
        pairs: Pairs in the suite, >= 1.
        confidence: Two-sided, in (0, 1).

    Raises:
        ValueError: Numbers outside their domain, equal rates, or more than 100,000 trials needed.
    """
    _check_open("power", power, 1.0)
    if rate_a == rate_b:
        raise ValueError("two agents with the same rate can't be told apart")

    def enough(trials: int) -> bool:
        return comparison_power(rate_a, rate_b, trials, pairs, confidence).power >= power

    trials = _smallest(enough, 1, 100_000)
    return comparison_power(rate_a, rate_b, trials, pairs, confidence)


def comparison_power(
    rate_a: float, rate_b: float, trials: int, pairs: int = 5, confidence: float = 0.95
) -> PowerEstimate:
    """Simulated probability that the stratified test tells two agents apart.

    Draws both reports and applies the Cochran-Mantel-Haenszel test in its normal approximation with
    the continuity correction, which follows the exact test of `compare` closely.

    Args:
        rate_a: Rate of the first agent on every pair, in [0, 1].
        rate_b: Rate of the second.
        trials: Runs of each pair, >= 1.
        pairs: Pairs in the suite, >= 1.
        confidence: Two-sided, in (0, 1).

    Raises:
        ValueError: Numbers outside their domain.
    """
    z = two_sided_z(confidence)
    _check_share("rate_a", rate_a)
    _check_share("rate_b", rate_b)
    if trials < 1 or pairs < 1:
        raise ValueError(f"{trials} trials of {pairs} pairs are nothing to compare")
    random = np.random.default_rng(SEED)
    a = random.binomial(trials, rate_a, (SIMULATIONS, pairs))
    b = random.binomial(trials, rate_b, (SIMULATIONS, pairs))
    events = (a + b).astype(np.float64)
    variance = events * (2 * trials - events) / (4.0 * (2 * trials - 1))
    distance = np.maximum(np.abs((a - events / 2.0).sum(axis=1)) - 0.5, 0.0)
    spread = np.sqrt(variance.sum(axis=1))
    power = float(((distance > 0.0) & (distance >= z * spread)).mean())
    error = math.sqrt(power * (1.0 - power) / SIMULATIONS)
    return PowerEstimate(trials, power, error, SIMULATIONS)


def _smallest(enough: Callable[[int], bool], low: int, most: int = LARGEST_N) -> int:
    """The smallest n from `low` on that is enough; more is never less."""
    high = low
    while not enough(high):
        if high >= most:
            raise ValueError(f"more than {most} trials would be needed")
        low, high = high + 1, min(2 * high + 1, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _binomial(k: int, n: int, p: float) -> float:
    if p in (0.0, 1.0):
        return float(k == n * p)
    logs = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(logs + k * math.log(p) + (n - k) * math.log1p(-p))


def _check_open(name: str, value: float, top: float) -> None:
    if not 0.0 < value < top:
        raise ValueError(f"{name} {value!r} is not between 0 and {top:g}")


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} {value!r} is not a share from 0 to 1")


def _check_whole(name: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{name} {value!r} is negative")
