"""Always-valid intervals, and rules that stop a run early without paying for having looked."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from impact_twin.statistics.intervals import Interval, check_confidence, check_counts
from impact_twin.statistics.rates import RATE_NAMES, rate_masks
from impact_twin.statistics.table import IntColumn, ObservationTable

PRIOR = 0.5
"""Both parameters of the mixing beta distribution (Jeffreys); 1 would be the uniform one."""

CONTINUE = "continue"
HOLDS = "holds"
FAILS = "fails"
PRECISE = "precise enough"


def always_valid(
    k: int, u: int, n: int, confidence: float = 0.95, prior: float = PRIOR
) -> Interval:
    """The beta-binomial mixture interval: it covers at every look at once.

    The p with B(a+k, a+n-k) / B(a, a) < p^k (1-p)^(n-k) / alpha. Source: Robbins 1970, Annals of
    Mathematical Statistics 41; Howard et al. 2021, Annals of Statistics 49. With unresolved cases
    the lower end takes k and the upper end k + u.

    It also holds for the mean of pairs with different rates when looks are taken after whole
    trials: the mean over the pairs of each factor's expectation is 1, so by the inequality of the
    means their product over one trial is at most 1, and the mixture stays a supermartingale.

    Args:
        k: Events seen.
        u: Cases of which we do not know.
        n: Cases so far; 0 gives [0, 1].
        confidence: Two-sided, in (0, 1).
        prior: Parameter a of the symmetric mixing distribution, > 0.

    Raises:
        ValueError: Impossible counts, confidence or prior.

    Example:
        >>> round(always_valid(24, 0, 24).lo, 4)
        0.8065
    """
    check_confidence(confidence)
    check_counts(k, u, n)
    if not prior > 0:
        raise ValueError(f"prior {prior!r} is not positive")
    alpha = 1.0 - confidence
    return Interval(_lower_end(k, n, alpha, prior), 1.0 - _lower_end(n - k - u, n, alpha, prior))


@dataclass(frozen=True)
class StopRule:
    """When a run may stop.

    Attributes:
        rate: One of `RATE_NAMES`, over the suite.
        kind: `above` (the rate is at least `value`), `below` (at most), or `half_width`.
        value: The threshold in [0, 1], or the half-width in (0, 0.5].
    """

    rate: str
    kind: str
    value: float


@dataclass(frozen=True)
class Look:
    """One look after a whole trial.

    Attributes:
        trial: Trials done.
        count: Events seen so far.
        unresolved: Cases of which we do not know so far.
        n: Pair-trials so far.
        interval: Always-valid interval at this look.
        verdict: `continue`, or why to stop: `holds`, `fails` or `precise enough`.
    """

    trial: int
    count: int
    unresolved: int
    n: int
    interval: Interval
    verdict: str


_RULE = re.compile(r"\s*([a-z_]+)\s*(>=|<=|\+-)\s*([0-9.eE+-]+)\s*")
_KINDS = {">=": "above", "<=": "below", "+-": "half_width"}


def parse_rule(text: str) -> StopRule:
    """Read a stop rule: `secure_utility >= 0.8`, `attack_success <= 0.1`, `secure_utility +- 0.1`.

    Raises:
        ValueError: The text is no such rule; the message says what is wrong with it.

    Example:
        >>> parse_rule("secure_utility >= 0.8")
        StopRule(rate='secure_utility', kind='above', value=0.8)
    """
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError("a rule is a rate, then >=, <= or +-, then a number")
    rate, sign, number = match.groups()
    if rate not in RATE_NAMES:
        raise ValueError(f"there is no rate {rate!r}; the rates are {', '.join(RATE_NAMES)}")
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{number!r} is not a number") from None
    top = 0.5 if sign == "+-" else 1.0
    if not 0.0 <= value <= top or (sign == "+-" and value == 0.0):
        raise ValueError(f"{number} is not between 0 and {top:g}")
    return StopRule(rate, _KINDS[sign], value)


def evaluate(rule: StopRule, interval: Interval) -> str:
    """What a rule says of an interval: `continue`, `holds`, `fails` or `precise enough`.

    Thresholds compare interval ends, not estimates: `>= v` holds when the lower end reaches v and
    fails when the upper end stays below it.
    """
    if rule.kind == "half_width":
        return PRECISE if interval.width / 2.0 <= rule.value else CONTINUE
    if rule.kind == "above":
        holds, fails = interval.lo >= rule.value, interval.hi < rule.value
    else:
        holds, fails = interval.hi <= rule.value, interval.lo > rule.value
    if holds:
        return HOLDS
    return FAILS if fails else CONTINUE


def look(rule: StopRule, table: ObservationTable, trial: int, confidence: float = 0.95) -> Look:
    """Look at the first `trial` trials of a table.

    Args:
        rule: The rule.
        table: Observations; those of later trials are not read.
        trial: Trials done by all pairs, >= 1. The interval is valid only after whole trials.
        confidence: Two-sided, in (0, 1).

    Raises:
        ValueError: A pair lacks one of the trials, or an impossible confidence.
    """
    seen, unknown = _sums_by_trial(table, rule.rate, trial)
    numbers = (int(seen.sum()), int(unknown.sum()), trial * len(table.pairs))
    interval = always_valid(*numbers, confidence)
    return Look(trial, *numbers, interval, evaluate(rule, interval))


def looks(rule: StopRule, table: ObservationTable, confidence: float = 0.95) -> tuple[Look, ...]:
    """Every look that a rule takes on a table, up to and with the first that stops.

    Raises:
        ValueError: The pairs don't all have the same trials 1, 2, 3, ...
    """
    last = int(table.trial.max()) if len(table) else 0
    seen, unknown = (column.cumsum() for column in _sums_by_trial(table, rule.rate, last))
    taken: list[Look] = []
    for trial in range(1, last + 1):
        numbers = (int(seen[trial - 1]), int(unknown[trial - 1]), trial * len(table.pairs))
        interval = always_valid(*numbers, confidence)
        taken.append(Look(trial, *numbers, interval, evaluate(rule, interval)))
        if taken[-1].verdict != CONTINUE:
            break
    return tuple(taken)


def _sums_by_trial(table: ObservationTable, rate: str, last: int) -> tuple[IntColumn, IntColumn]:
    """Events and unknowns over all pairs, for each of the trials 1 to `last`."""
    done = table.trial <= last
    if np.bincount(table.pair[done], minlength=len(table.pairs)).tolist() != [last] * len(
        table.pairs
    ):
        raise ValueError(f"not every pair has trials 1 to {last}")
    seen, unknown = (
        np.bincount(table.trial[mask & done], minlength=last + 1)[1:].astype(np.int64)
        for mask in rate_masks(table, rate)
    )
    return seen, unknown


def _lower_end(k: int, n: int, alpha: float, prior: float) -> float:
    """The smallest p that k events in n do not rule out."""
    if k == 0:
        return 0.0
    mixture = _log_beta(prior + k, prior + n - k) - _log_beta(prior, prior) + math.log(alpha)

    def ruled_out(p: float) -> bool:
        likelihood = k * math.log(p) + ((n - k) * math.log1p(-p) if k < n else 0.0)
        return mixture >= likelihood

    low, high = 0.0, k / n
    while True:
        middle = (low + high) / 2.0
        if middle in (low, high):
            return low if low > 0.0 else high
        low, high = (middle, high) if ruled_out(middle) else (low, middle)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
