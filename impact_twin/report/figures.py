"""Figures as JSON: the statistics room's results under the report's names, to 12 decimals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from impact_twin.procurement.model import JSON
from impact_twin.statistics.decision import DecisionChange
from impact_twin.statistics.order import OrderEffects
from impact_twin.statistics.passk import RepeatedRate
from impact_twin.statistics.rates import Rate
from impact_twin.statistics.summary import AggregateSummary, PairSummary

DECIMALS = 12


def rounded(value: JSON) -> JSON:
    """Return a JSON value with every real number to 12 decimals; whole numbers stay whole.

    >>> rounded({"a": [1, 1 / 3, None], "b": -1e-15})
    {'a': [1, 0.333333333333, None], 'b': 0.0}
    """
    if isinstance(value, float):
        return round(value, DECIMALS) + 0.0
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def aggregate_json(found: AggregateSummary) -> dict[str, JSON]:
    """Return `summary.aggregate`."""
    effect = found.attack_effect_on_utility
    data: dict[str, JSON] = rounded(
        {
            "sampling_unit": found.sampling_unit,
            "n": found.n,
            "equal_n": found.equal_n,
            "classes": found.classes,
            "rates": {name: _rate(rate) for name, rate in found.rates.items()},
            "attack_effect_on_utility": {
                "difference": effect.difference,
                "bounds": effect.bounds,
                "interval": effect.interval,
                "confidence": effect.confidence,
            },
        }
    )
    return data


def order_json(found: OrderEffects, *, withheld: bool) -> dict[str, JSON]:
    """Return `summary.order`; without p-values when the repeats add no information."""
    data: dict[str, JSON] = rounded(
        {
            "trends": [_tested(asdict(test), withheld) for test in found.trends],
            "twin_order": [
                {
                    **_tested(asdict(test), withheld),
                    "poisoned_first": _events(test.poisoned_first),
                    "clean_first": _events(test.clean_first),
                }
                for test in found.twin_order
            ],
        }
    )
    return data


def decision_json(found: DecisionChange | None, *, withheld: bool) -> dict[str, JSON] | None:
    """Return a `decision_change`; without p-values when the repeats add no information."""
    if found is None:
        return None
    data: dict[str, JSON] = rounded(_tested(asdict(found), withheld))
    return data


def pair_json(found: PairSummary) -> dict[str, JSON]:
    """Return the figures of one entry of `summary.pairs`."""
    data: dict[str, JSON] = rounded(
        {
            "pair": found.pair,
            "label": found.label,
            "n": found.n,
            "classes": found.classes,
            "rates": {name: _rate(rate) for name, rate in found.rates.items()},
            "disagreement": found.disagreement,
            "disagreement_bounds": found.disagreement_bounds,
            "distinct_decisions": asdict(found.distinct_decisions),
            "distinct_traces": asdict(found.distinct_traces),
            "attack_at_k": [_repeated(item) for item in found.attack_at_k],
            "pass_k": [_repeated(item) for item in found.pass_k],
            "stability": None if found.stability is None else asdict(found.stability),
            "replicates": found.replicates,
        }
    )
    return data


def _rate(rate: Rate) -> dict[str, JSON]:
    return {
        "count": rate.count,
        "unresolved": rate.unresolved,
        "n": rate.n,
        "rate": rate.rate,
        "bounds": rate.bounds,
        "wilson": rate.wilson,
        "fixed_suite": rate.fixed_suite,
        "confidence": rate.confidence,
    }


def _tested(data: dict[str, JSON], withheld: bool) -> dict[str, JSON]:
    return {**data, "p_value": None, "p_holm": None} if withheld else data


def _events(found: tuple[int, int]) -> dict[str, JSON]:
    return {"count": found[0], "n": found[1]}


def _repeated(item: RepeatedRate) -> dict[str, JSON]:
    return {"k": item.k, "bounds": item.bounds, "interval": item.interval}
