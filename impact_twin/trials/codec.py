"""Records of cases as JSON, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from impact_twin.agents.protocol import ModelCall, Usage
from impact_twin.canonical import MAX_SAFE_INTEGER
from impact_twin.procurement.model import JSON
from impact_twin.text import storable
from impact_twin.trials.records import Attempt, CaseKey, CaseRecord

MAX_STORED_DEPTH = 32

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def case_to_json(record: CaseRecord) -> dict[str, JSON]:
    """Return a case's record as a JSON object."""
    return {
        "pair": record.key.pair,
        "trial": record.key.trial,
        "twin": record.key.twin,
        "position": record.position,
        "termination": record.termination,
        "trace": record.trace,
        "duration_s": record.duration_s,
        "usage": usage_to_json(record.usage),
        "model_calls": [call_to_json(call) for call in record.model_calls],
        "attempts": [attempt_to_json(attempt) for attempt in record.attempts],
        "delivered": record.delivered,
        "delivered_text": record.delivered_text,
        "late_calls": record.late_calls,
        "instance": record.instance,
        "detail": dict(record.detail),
    }


def case_from_json(data: Mapping[str, JSON]) -> CaseRecord:
    """Rebuild a case's record; raises KeyError, TypeError or ValueError when it is none."""
    return CaseRecord(
        key=CaseKey(data["pair"], data["trial"], data["twin"]),
        position=data["position"],
        termination=data["termination"],
        trace=data["trace"],
        duration_s=data["duration_s"],
        usage=usage_from_json(data["usage"]),
        model_calls=tuple(call_from_json(item) for item in data["model_calls"]),
        attempts=tuple(Attempt(**item) for item in data["attempts"]),
        delivered=data["delivered"],
        delivered_text=data["delivered_text"],
        late_calls=data["late_calls"],
        instance=data["instance"],
        detail=dict(data["detail"]),
    )


def attempt_to_json(attempt: Attempt) -> dict[str, JSON]:
    """Return one try as a JSON object."""
    return dict(attempt.__dict__)


def usage_to_json(usage: Usage) -> dict[str, JSON]:
    """Return usage as a JSON object."""
    return dict(usage.__dict__)


def usage_from_json(data: Mapping[str, JSON]) -> Usage:
    """Rebuild usage."""
    return Usage(data["input_tokens"], data["output_tokens"], data["cost_usd"])


def call_to_json(call: ModelCall) -> dict[str, JSON]:
    """Return one model request as a JSON object."""
    return asdict(call)


def call_from_json(data: Mapping[str, JSON]) -> ModelCall:
    """Rebuild one model request; raises KeyError, TypeError or ValueError when it is none."""
    return ModelCall(**{**data, "usage": usage_from_json(data["usage"])})


def clean_call(call: ModelCall) -> ModelCall:
    """Return a model request whose every figure is in its domain and whose texts can be stored."""
    return ModelCall(
        started=_real(call.started) or 0.0,
        duration_s=_real(call.duration_s) or 0.0,
        finish_reason=_text(call.finish_reason),
        response_id=_text(call.response_id),
        http_status=clean_status(call.http_status),
        error=_text(call.error),
        cached=bool(call.cached),
        usage=clean_usage(call.usage),
    )


def clean_usage(usage: Usage) -> Usage:
    """Return usage with whole tokens >= 0 and a finite cost >= 0 or None."""
    return Usage(
        input_tokens=_whole(usage.input_tokens) or 0,
        output_tokens=_whole(usage.output_tokens) or 0,
        cost_usd=_real(usage.cost_usd),
    )


def clean_status(status: object) -> int | None:
    """Return an HTTP status, or None for what is none."""
    return status if type(status) is int and 100 <= status <= 599 else None


def storable_json(value: object) -> JSON:
    """Return a JSON value that any reader takes.

    Lone surrogates become U+FFFD, non-finite numbers None, integers beyond 2^53 and what JSON does
    not know text, and what is nested deeper than `MAX_STORED_DEPTH` an ellipsis.

    >>> storable_json({"a": float("nan"), "b": (1, 2**60)})
    {'a': None, 'b': [1, '1152921504606846976']}
    """
    return _storable(value, MAX_STORED_DEPTH)


def dumps(value: object) -> str:
    """Return compact ASCII JSON without lone surrogates or non-finite numbers.

    The common case is one pass in C; only a value that needs it is cleaned.
    """
    try:
        text = _encode(value)
    except (ValueError, TypeError, RecursionError):
        text = ""
    return text if text and "\\ud" not in text else _encode(storable_json(value))


def _storable(value: Any, depth: int) -> JSON:
    if isinstance(value, Mapping | list | tuple):
        if depth == 0:
            return "..."
        if isinstance(value, Mapping):
            return {storable(str(key)): _storable(item, depth - 1) for key, item in value.items()}
        return [_storable(item, depth - 1) for item in value]
    return _storable_leaf(value)


def _storable_leaf(value: Any) -> JSON:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return storable(str.__str__(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, int):
        return type(value).__name__
    if abs(value) <= MAX_SAFE_INTEGER:
        return int(value)
    return str(value) if value.bit_length() < 4096 else "an integer of more than 1000 digits"


def _text(value: object) -> str | None:
    return storable(str.__str__(value))[:500] if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    real = _real(value)
    return None if real is None else min(int(real), MAX_SAFE_INTEGER)


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        real = float(value)
    except OverflowError:
        return None
    return real if math.isfinite(real) and real >= 0 else None
