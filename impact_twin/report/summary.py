"""A report's summary: every figure, derived from its pair-trials by pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from impact_twin.procurement.model import JSON, TWINS
from impact_twin.report.copying import copying_evidence
from impact_twin.report.figures import aggregate_json, decision_json, order_json, pair_json, rounded
from impact_twin.report.gates import Gate, evaluate
from impact_twin.report.observations import CaseRow, iter_cases, observation_table
from impact_twin.report.until import sequential_json
from impact_twin.report.warnings import warnings_of
from impact_twin.statistics.decision import decision_changes
from impact_twin.statistics.order import order_effects
from impact_twin.statistics.replicates import withholds
from impact_twin.statistics.summary import summarise

DELIVERIES = ("intact", "altered", "removed", "unknown")


def summary_of(report: Mapping[str, JSON], gates: Iterable[Gate] = ()) -> dict[str, JSON]:
    """Return the summary of a report.

    Pure: whoever has a report can derive its summary again and compare.

    Args:
        report: A report; its own `summary`, if any, is not read.
        gates: The gates to evaluate (`gates_of` gives those of a stored summary).

    Raises:
        ValueError: the pair-trials contradict the plan.
    """
    rows = list(iter_cases(report))
    cases = [row.case for row in rows]
    evidence = copying_evidence(cases, report["identity"]["agent"]["kind"])
    table = observation_table(report)
    found = summarise(table, report["plan"]["confidence"], copied=bool(evidence))
    label = found.aggregate.replicates
    withheld = withholds(label)
    decisions = decision_changes(table)
    aggregate = aggregate_json(found.aggregate)
    aggregate["decision_change"] = decision_json(decisions.suite, withheld=withheld)
    summary: dict[str, JSON] = {
        "aggregate": aggregate,
        "pairs": [
            {
                **pair_json(pair),
                "decision_change": decision_json(change, withheld=withholds(pair.replicates)),
                **_counts(report, rows, pair.pair),
            }
            for pair, change in zip(found.pairs, decisions.pairs, strict=True)
        ],
        "replicates": {"label": label, "withheld": withheld, "evidence": evidence},
        "sequential": sequential_json(report, table),
        "order": order_json(order_effects(table), withheld=withheld),
        "usage": usage_of(cases),
    }
    summary["warnings"] = warnings_of(report, summary)
    summary["gates"] = evaluate(gates, summary)
    return summary


def usage_of(cases: Iterable[Mapping[str, JSON]]) -> dict[str, JSON]:
    """Return what cases consumed together.

    Returns:
        `requests`, `input_tokens`, `output_tokens`; `cost_usd` over the cases whose cost is known,
        None when there is none; `cases_without_cost`: cases with tokens but no known cost.
    """
    requests = inputs = outputs = without = 0
    costs: list[float] = []
    for case in cases:
        requests += sum(attempt["requests"] for attempt in case["attempts"])
        usage = case["usage"]
        if usage is None:
            continue
        inputs += usage["input_tokens"]
        outputs += usage["output_tokens"]
        if usage["cost_usd"] is None:
            without += 1
        else:
            costs.append(usage["cost_usd"])
    return {
        "requests": requests,
        "input_tokens": inputs,
        "output_tokens": outputs,
        "cost_usd": rounded(math.fsum(costs)) if costs else None,
        "cases_without_cost": without,
    }


def _counts(report: Mapping[str, JSON], cases: list[CaseRow], pair: str) -> dict[str, JSON]:
    """What is counted of a pair but enters no rate."""
    items = [item for item in report["pair_trials"] if item["pair"] == pair]
    flagged = [row.twin for row in cases if row.pair == pair and row.trace and row.trace["flags"]]
    words = [item["poisoned"]["delivered"] for item in items]
    return {
        "targeted": sum(item["targeted"] for item in items),
        "toward_attacker": sum(item["toward_attacker"] for item in items),
        "flagged": {twin: flagged.count(twin) for twin in TWINS},
        "delivered": {word: words.count(word) for word in DELIVERIES},
    }
