"""Gates: conditions on the ends of intervals, so that luck and small n do not pass them."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.statistics.intervals import Interval, wilson
from impact_twin.text import escape

Scope = Literal["suite", "pairs"]

BETTER_HIGH = (
    "secure_utility",
    "benign_utility",
    "utility_under_attack",
    "harm_free",
    "exposed",
    "resisted",
)
BETTER_LOW = ("attack_success",)
OPTIONS: Mapping[str, str] = {"suite": "--gate", "pairs": "--gate-pairs"}

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*([a-z_]+)\s*(>=|<=|>|<)\s*([0-9]*\.?[0-9]+)\s*(%?)\s*")


@dataclass(frozen=True)
class Gate:
    """One condition.

    Attributes:
        scope: `suite` for the aggregate, `pairs` for every pair by itself.
        rate: Name of the rate.
        comparator: `>=` or `>` (the lower end is compared), `<=` or `<` (the upper end).
        threshold: In [0, 1].
    """

    scope: Scope
    rate: str
    comparator: str
    threshold: float

    @property
    def text(self) -> str:
        """The condition in its normal form, e.g. `secure_utility >= 0.8`."""
        digits = format(Decimal(repr(self.threshold)).normalize(), "f")
        return f"{self.rate} {self.comparator} {digits}"

    @property
    def end(self) -> str:
        """Which end of the interval is compared: `lower` or `upper`."""
        return "lower" if self.comparator.startswith(">") else "upper"

    def holds(self, interval: Sequence[float]) -> bool:
        """Whether the condition holds for an interval [lo, hi]."""
        value = interval[0] if self.end == "lower" else interval[1]
        return _COMPARE[self.comparator](value, self.threshold)


def parse_gate(text: str, scope: Scope = "suite") -> Gate:
    """Read a gate such as `secure_utility >= 0.8` or `attack_success < 10%`.

    Raises:
        InputError: not a condition, an unknown rate, a threshold outside [0, 1], or a comparator
            that would demand a bad result.
    """
    where = OPTIONS[scope]
    found = _FORM.fullmatch(text)
    if not found:
        raise InputError(
            f"{escape(text)!r} is not a condition on a rate",
            where=where,
            mend="Write it like 'secure_utility >= 0.8'.",
        )
    rate, comparator, digits, percent = found.groups()
    if rate not in BETTER_HIGH + BETTER_LOW:
        raise InputError(
            f"there is no rate {rate!r}",
            where=where,
            mend=f"The rates are {', '.join(BETTER_LOW + BETTER_HIGH)}.",
        )
    sensible = ">" if rate in BETTER_HIGH else "<"
    if not comparator.startswith(sensible):
        raise InputError(
            f"{rate} is better when {'high' if sensible == '>' else 'low'}",
            where=where,
            mend=f"Compare it with {sensible}= or {sensible}.",
        )
    threshold = float(digits) / (100 if percent else 1)
    if threshold > 1:
        raise InputError(
            f"the threshold {digits}{percent} is above 1",
            where=where,
            mend="Write a share such as 0.8, or 80%.",
        )
    return Gate(scope, rate, comparator, threshold)


def check_reach(gates: Iterable[Gate], *, trials: int, pairs: int, confidence: float) -> None:
    """Refuse gates that even perfect results could not pass.

    Args:
        gates: The gates.
        trials: Planned trials of each pair, >= 1.
        pairs: Planned pairs, >= 1.
        confidence: Two-sided, in (0, 1).

    Raises:
        InputError: a gate is out of reach; it names the n needed.
    """
    for gate in gates:
        n = trials * pairs if gate.scope == "suite" else trials
        if _reached(gate, n, confidence):
            continue
        needed = needed_n(gate, confidence)
        raise InputError(
            f"{gate.text} is out of reach: {n} perfect "
            f"{'pair-trials' if gate.scope == 'suite' else 'trials of a pair'} leave the "
            f"{gate.end} end at {_perfect_end(gate, n, confidence):.3f}",
            where=OPTIONS[gate.scope],
            mend=_mend(gate, needed, pairs),
        )


def needed_n(gate: Gate, confidence: float) -> int | None:
    """The least n at which perfect results pass the gate; None when no n does.

    Perfect results have the ends n / (n + z^2) and z^2 / (n + z^2) (see `wilson`).
    """
    distance = 1.0 - gate.threshold if gate.end == "lower" else gate.threshold
    if distance <= 0.0:
        return None
    one = wilson(1, 1, confidence)
    assert one is not None
    square = (1.0 - one.lo) / one.lo
    n = max(1, math.floor(square * (1.0 - distance) / distance) - 1)
    while not _reached(gate, n, confidence):
        n += 1
    return n


def evaluate(gates: Iterable[Gate], summary: Mapping[str, JSON]) -> list[dict[str, JSON]]:
    """Compare gates with a summary's intervals.

    A gate of the suite reads the pooled Wilson interval of the aggregate, which is the wider of its
    two. A gate never holds on an interval that is withheld because repeats add no information.

    Args:
        gates: The gates.
        summary: `aggregate` and `pairs` of a report's summary.

    Returns:
        `summary.gates` of the report: one object a gate.
    """
    return [_evaluate_one(gate, summary) for gate in gates]


def gates_of(results: Iterable[Mapping[str, JSON]]) -> list[Gate]:
    """The gates that a report's `summary.gates` was made from.

    Raises:
        InputError: an entry is not a gate.
    """
    return [parse_gate(item["gate"], item["scope"]) for item in results]


def all_held(summary: Mapping[str, JSON]) -> bool:
    """Whether every gate of a summary held; true without gates."""
    return all(item["held"] for item in summary["gates"])


def _evaluate_one(gate: Gate, summary: Mapping[str, JSON]) -> dict[str, JSON]:
    if gate.scope == "suite":
        sources = [(None, summary["aggregate"]["rates"][gate.rate])]
    else:
        sources = [(row["pair"], row["rates"][gate.rate]) for row in summary["pairs"]]
    compared = []
    for pair, rate in sources:
        interval = rate["wilson"]
        compared.append(
            {
                "pair": pair,
                "value": None if interval is None else interval[0 if gate.end == "lower" else 1],
                "held": interval is not None and gate.holds(interval),
            }
        )
    return {
        "gate": gate.text,
        "scope": gate.scope,
        "rate": gate.rate,
        "comparator": gate.comparator,
        "threshold": gate.threshold,
        "end": gate.end,
        "held": all(item["held"] for item in compared),
        "compared": compared,
    }


def _reached(gate: Gate, n: int, confidence: float) -> bool:
    return gate.holds(_perfect(gate, n, confidence))


def _perfect(gate: Gate, n: int, confidence: float) -> Interval:
    interval = wilson(n if gate.end == "lower" else 0, n, confidence)
    assert interval is not None
    return interval


def _perfect_end(gate: Gate, n: int, confidence: float) -> float:
    interval = _perfect(gate, n, confidence)
    return interval.lo if gate.end == "lower" else interval.hi


def _mend(gate: Gate, needed: int | None, pairs: int) -> str:
    if needed is None:
        return "No number of trials reaches it: choose a threshold inside 0 to 1."
    trials = math.ceil(needed / pairs) if gate.scope == "suite" else needed
    what = f"{needed} pair-trials, so " if gate.scope == "suite" else ""
    return f"It needs {what}--trials {trials} or more."
