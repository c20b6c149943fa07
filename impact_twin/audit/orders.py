"""Whether an order of two configurations can be settled by the evidence, and by sampling."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from impact_twin.audit.disagreements import Finding
from impact_twin.audit.records import case_key

Case = tuple[str | None, ...]


@dataclass(frozen=True)
class Order:
    """What may be said about the order of two configurations on their common cases.

    Attributes:
        first, second: The configurations.
        cases: How many cases both have.
        before, after: Saved successes (first, second) on them, and on those that the filter leaves.
        evidence: Bounds on successes of first and second: (lo, hi, lo, hi).
        settled: "first" or "second", whichever has more successes whatever the unresolved were,
            or "" when the bounds overlap.
        p: Exact two-sided McNemar p at the least favourable completion, adjusted by Holm over all
            pairs; 1.0 when the order isn't settled.
    """

    first: str
    second: str
    cases: int
    before: tuple[int, int]
    after: tuple[int, int]
    evidence: tuple[int, int, int, int]
    settled: str
    p: float

    @property
    def reversed(self) -> bool:
        """Whether the filter turns the order of the saved labels around."""
        before, after = self.before, self.after
        return (before[0] - before[1]) * (after[0] - after[1]) < 0


def case_of(item: Finding) -> Case:
    """Return the case of a record: all that identifies it but the configuration."""
    return case_key(item.record)[1:]


def supported(item: Finding, *, other: bool = False) -> bool | None:
    """Return what a record's tool results support: success, failure, or None for unresolved.

    Unresolved are: a result that is missing where the request would have been a success; a run
    that ended in an error; a record about which no rule could be asked.
    """
    answer = item.other if other else item.loaded
    if answer is None or answer.verdict is None:
        return None
    if answer.verdict:
        return True
    if item.record.error is not None or (answer.missing and answer.possible):
        return None
    return False


def orders(
    groups: Mapping[str, Sequence[Finding]], is_removed: Callable[[Finding], bool]
) -> tuple[Order, ...]:
    """Compare every two configurations on the cases that both have.

    Args:
        groups: The examined records of each configuration.
        is_removed: Whether the filter removes a record.
    """
    by_case: dict[str, dict[Case, Finding]] = {}
    for name, items in groups.items():
        repeated = {case for case, count in Counter(map(case_of, items)).items() if count > 1}
        # A case that occurs twice has no single partner; it counts in the rates only.
        by_case[name] = {case_of(item): item for item in items if case_of(item) not in repeated}
    pairs = [
        _order(first, second, by_case[first], by_case[second], is_removed)
        for first, second in combinations(sorted(groups), 2)
    ]
    adjusted = holm([pair.p for pair in pairs])
    return tuple(
        Order(**{**pair.__dict__, "p": p}) for pair, p in zip(pairs, adjusted, strict=True)
    )


def _order(
    first: str,
    second: str,
    ours: Mapping[Case, Finding],
    theirs: Mapping[Case, Finding],
    is_removed: Callable[[Finding], bool],
) -> Order:
    common = [(ours[case], theirs[case]) for case in ours if case in theirs]
    left = [pair for pair in common if not (is_removed(pair[0]) or is_removed(pair[1]))]
    seen = [(supported(one), supported(two)) for one, two in common]
    bounds = (*_range(one for one, _ in seen), *_range(two for _, two in seen))
    settled = "first" if bounds[0] > bounds[3] else "second" if bounds[2] > bounds[1] else ""
    return Order(
        first=first,
        second=second,
        cases=len(common),
        before=_successes(common),
        after=_successes(left),
        evidence=bounds,
        settled=settled,
        p=_least_favourable(seen, settled),
    )


def _successes(pairs: Sequence[tuple[Finding, Finding]]) -> tuple[int, int]:
    return (
        sum(1 for one, _ in pairs if one.record.security),
        sum(1 for _, two in pairs if two.record.security),
    )


def _range(values: Any) -> tuple[int, int]:
    listed = list(values)
    return listed.count(True), listed.count(True) + listed.count(None)


def _least_favourable(seen: Sequence[tuple[bool | None, bool | None]], settled: str) -> float:
    """McNemar's p with every unresolved case completed against the settled direction."""
    if not settled:
        return 1.0
    more = [pair if settled == "first" else (pair[1], pair[0]) for pair in seen]
    completed = [(bool(one), two is not False) for one, two in more]
    return mcnemar(
        sum(1 for one, two in completed if one and not two),
        sum(1 for one, two in completed if two and not one),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar p: a fair coin for the cases on which two configurations differ.

    Source: McNemar 1947, Psychometrika 12; the exact conditional form is a binomial test.

    Args:
        only_first: Cases that succeeded in the first only, >= 0.
        only_second: Cases that succeeded in the second only, >= 0.

    Example:
        >>> mcnemar(8, 0)
        0.0078125
    """
    n = only_first + only_second
    tail = sum(math.comb(n, k) for k in range(min(only_first, only_second) + 1))
    return float(min(1.0, 2 * tail / 2**n))


def holm(values: Sequence[float]) -> list[float]:
    """Return p values adjusted by Holm's step-down method, in the order given.

    Source: Holm 1979, Scandinavian Journal of Statistics 6.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(values)), key=lambda index: values[index])
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = highest
    return adjusted


def order_json(order: Order, confidence: float) -> dict[str, Any]:
    """Return an order as a JSON value."""
    return {
        "first": order.first,
        "second": order.second,
        "cases": order.cases,
        "labels_before": list(order.before),
        "labels_after": list(order.after),
        "reversed_by_filter": order.reversed,
        "evidence_bounds": [list(order.evidence[:2]), list(order.evidence[2:])],
        "more_successes": {"first": order.first, "second": order.second}.get(order.settled),
        "p": round(order.p, 12),
        "settled_by_sampling": bool(order.settled) and order.p <= 1 - confidence,
    }
