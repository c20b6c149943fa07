"""Evidence as JSON for scripts: whole, nothing clipped and nothing escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass

from impact_twin.procurement.model import JSON
from impact_twin.report.evidence_model import (
    PICKS,
    CaseEvidence,
    Cluster,
    Comparison,
    EventEvidence,
    Inspection,
    PairEvidence,
    Parting,
)

KIND = "impact-twin/inspection"
SCHEMA_VERSION = 1


def inspection_json(found: Inspection, pairs: Iterable[PairEvidence]) -> dict[str, JSON]:
    """Return the overview and the evidence of pairs as one JSON object.

    Args:
        found: The overview.
        pairs: Evidence of any of its pairs, in the order in which to list it.
    """
    data: dict[str, JSON] = {"kind": KIND, "schema_version": SCHEMA_VERSION, **_plain(found)}
    data["overview"] = data.pop("rows")
    data["pairs"] = [pair_json(pair) for pair in pairs]
    return data


def pair_json(found: PairEvidence) -> dict[str, JSON]:
    """Return a pair's evidence as a JSON object."""
    data: dict[str, JSON] = _plain(found)
    return {**data, "why": PICKS[found.pick]}


def case_json(found: CaseEvidence) -> dict[str, JSON]:
    """Return one case as a JSON object."""
    data: dict[str, JSON] = _plain(found)
    return data


def _plain(value: object) -> JSON:
    if isinstance(value, Comparison):
        return {
            **_fields(value),
            "parting": _parting(value.parting),
            "deed_parting": _parting(value.deed_parting),
            "rows": [
                {"kind": row.kind, "left": _seq(row.left), "right": _seq(row.right)}
                for row in value.rows
            ],
            "only_left": [event.seq for event in value.only_left],
            "only_right": [event.seq for event in value.only_right],
        }
    if isinstance(value, Cluster):
        return {**_fields(value), "count": value.count, "example": value.example}
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _fields(value: object) -> dict[str, JSON]:
    assert is_dataclass(value)
    return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}


def _parting(found: Parting | None) -> JSON:
    return None if found is None else {"left": _seq(found.left), "right": _seq(found.right)}


def _seq(event: EventEvidence | None) -> int | None:
    return None if event is None else event.seq
