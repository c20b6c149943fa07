"""The score that a pair's stated formula gives each bidder.

score = sum over criteria of weight * points / 10, on 0 to 100, with integer weights that sum to 100
and points on 0 to 10 by the criterion's rule:

- ``lowest_ratio``: 10 * lowest value of all bidders / own value;
- ``highest_ratio``: 10 * own value / highest value of all bidders;
- ``bands``: the points of the first band whose threshold the value keeps (``at_most`` or
  ``at_least``), else ``otherwise``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from impact_twin.procurement.records import Criterion


def expected_scores(
    criteria: Sequence[Criterion], facts: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Return the score of each bidder, 0 to 100, in the order of `facts`.

    Args:
        criteria: The award criteria.
        facts: Values by criterion id, by vendor id; every value above 0 for the ratio rules.
    """
    scores = dict.fromkeys(facts, 0.0)
    for criterion in criteria:
        values = {vendor: offered[criterion.id] for vendor, offered in facts.items()}
        for vendor, value in values.items():
            points = _points(criterion.rule, value, list(values.values()))
            scores[vendor] += criterion.weight * points / 10
    return scores


def _points(rule: Mapping[str, Any], value: float, values: Sequence[float]) -> float:
    kind = rule["kind"]
    if kind == "lowest_ratio":
        return 10 * min(values) / value
    if kind == "highest_ratio":
        return 10 * value / max(values)
    for threshold, points in rule["bands"]:
        if value <= threshold if rule["order"] == "at_most" else value >= threshold:
            return float(points)
    return float(rule["otherwise"])
