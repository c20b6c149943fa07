"""A case of the report: made from the runner's record, and what its trace says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from impact_twin.agents.protocol import ModelCall, Usage
from impact_twin.canonical import canonical_bytes, digest_bytes
from impact_twin.procurement.model import JSON, Trace, Verdict
from impact_twin.report.outcomes import CaseView, PairFacts
from impact_twin.trials.records import Attempt, CaseRecord

if TYPE_CHECKING:
    from impact_twin.procurement.records import Pair

TRACE_FIELDS = ("pair", "twin", "termination", "events", "final_state", "final_answer")
VERDICT_FIELDS = tuple(field.name for field in fields(Verdict))


def case_json(record: CaseRecord | None, texts: dict[str, str]) -> dict[str, JSON]:
    """Return a case as the report holds it.

    Args:
        record: The runner's record; None for a case that never started.
        texts: Gets the delivered text and the detail, by digest.
    """
    if record is None:
        return {
            "termination": "not_run",
            "trace": None,
            "position": None,
            "duration_s": 0,
            "usage": None,
            "model_calls": [],
            "attempts": [],
            "delivered": None,
            "late_calls": 0,
        }
    case: dict[str, JSON] = {
        "termination": record.termination,
        "trace": record.trace or None,
        "position": record.position if record.position >= 0 else None,
        "duration_s": _seconds(record.duration_s),
        "usage": _usage(record.usage),
        "model_calls": [_model_call(call) for call in record.model_calls],
        "attempts": [_attempt(attempt, record.trace) for attempt in record.attempts],
        "delivered": record.delivered,
        "late_calls": record.late_calls,
    }
    if record.delivered_text is not None:
        case["delivered_text"] = _keep(record.delivered_text, texts)
    if record.detail:
        case["detail"] = _keep(canonical_bytes(dict(record.detail)).decode(), texts)
    return case


def case_detail(case: Mapping[str, JSON], texts: Mapping[str, str]) -> dict[str, JSON]:
    """Return the extra facts that the agent layer gave of a case; empty when there are none."""
    found: dict[str, JSON] = json.loads(texts[case["detail"]]) if "detail" in case else {}
    return found


def attempt_traces(case: Mapping[str, JSON]) -> list[str | None]:
    """Return the digest of each try's trace, in order; the last is the case's own."""
    return [attempt.get("trace", case["trace"]) for attempt in case["attempts"]]


def verdict_json(verdict: Verdict) -> dict[str, JSON]:
    """Return a verdict as the fields of a trace entry."""
    return verdict.to_json()


def verdict_of(entry: Mapping[str, JSON]) -> Verdict:
    """Return the verdict that a trace entry of the report states."""
    found: dict[str, Any] = {
        name: tuple(entry[name]) if isinstance(entry[name], list) else entry[name]
        for name in VERDICT_FIELDS
    }
    return Verdict(**found)


def trace_json(entry: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the part of a trace entry that its digest covers."""
    return {name: entry[name] for name in TRACE_FIELDS}


def trace_of(entry: Mapping[str, JSON], texts: Mapping[str, str]) -> Trace:
    """Return the trace of a trace entry; raises KeyError when `texts` lacks an output."""
    return Trace.from_json(entry, texts)


def trace_entry(
    case: Mapping[str, JSON], traces: Mapping[str, Mapping[str, JSON]], pair: str, twin: str
) -> Mapping[str, JSON] | None:
    """Return the trace entry of a case; None when its record can't be read.

    That is when the trace isn't there, or is of another pair, twin or termination.
    """
    entry = traces.get(case["trace"])
    if entry is None:
        return None
    owner = (entry["pair"], entry["twin"], entry["termination"])
    return entry if owner == (pair, twin, case["termination"]) else None


def case_view(
    case: Mapping[str, JSON], traces: Mapping[str, Mapping[str, JSON]], pair: str, twin: str
) -> CaseView:
    """Return what the outcome class reads of a case; no verdict when it can't be read."""
    entry = trace_entry(case, traces, pair, twin)
    return CaseView(case["termination"], None if entry is None else verdict_of(entry))


def pair_facts(pair: Pair) -> PairFacts:
    """Return what the outcome class reads of a pair.

    The favoured vendor is the one that the goal names for the award or, where the goal is another
    one, the author of the poisoned document.
    """
    if pair.goal.kind == "score_and_recommend":
        favoured: str | None = pair.goal.vendor
    else:
        favoured = pair.documents[pair.passage_document].vendor
    return PairFacts(control=pair.control, expected=pair.decision, favoured=favoured)


def _keep(text: str, texts: dict[str, str]) -> str:
    key = digest_bytes(text.encode("utf-8"))
    texts[key] = text
    return key


def _seconds(value: float) -> float:
    return round(value, 6)


def _usage(usage: Usage) -> dict[str, JSON] | None:
    if usage == Usage():
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }


def _model_call(call: ModelCall) -> dict[str, JSON]:
    return {
        "started": round(call.started, 3),
        "duration_s": _seconds(call.duration_s),
        "finish_reason": call.finish_reason,
        "response_id": call.response_id,
        "http_status": call.http_status,
        "error": call.error,
        "cached": call.cached,
        "usage": _usage(call.usage),
    }


def _attempt(attempt: Attempt, trace: str) -> dict[str, JSON]:
    data: dict[str, JSON] = {
        "termination": attempt.termination,
        "requests": attempt.requests,
        "started": round(attempt.started, 3),
        "duration_s": _seconds(attempt.duration_s),
    }
    if attempt.trace and attempt.trace != trace:
        data["trace"] = attempt.trace
    if attempt.error_kind or attempt.message or attempt.http_status is not None:
        data["error"] = {
            "kind": attempt.error_kind,
            "message": attempt.message,
            "http_status": attempt.http_status,
        }
    return data
