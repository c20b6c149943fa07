"""Evidence that runs are copies of each other, seen outside the observation table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from impact_twin.procurement.model import JSON

CACHED = "cached"
RESPONSE_ID_REPEATED = "response_id_repeated"
FEWER_REQUESTS_THAN_CASES = "fewer_requests_than_cases"
EVIDENCE = (CACHED, RESPONSE_ID_REPEATED, FEWER_REQUESTS_THAN_CASES)


def copying_evidence(cases: Iterable[Mapping[str, JSON]], agent_kind: str) -> list[str]:
    """Return what says that a cache of ours answered instead of the model.

    Requests are compared with cases only where a model was asked at all: an agent that is no
    model, or that asks one behind our back, sends none that we could count. A provider's own
    prefix cache leaves no such evidence.

    Args:
        cases: All cases of a report.
        agent_kind: The agent's kind; a `model` always sends requests.

    Returns:
        Some of `EVIDENCE`, in that order.
    """
    cached = repeated = False
    completed = requests = 0
    seen: set[str] = set()
    for case in cases:
        completed += case["termination"] == "completed"
        requests += sum(attempt["requests"] for attempt in case["attempts"])
        for call in case["model_calls"]:
            cached = cached or call["cached"]
            identity = call["response_id"]
            if identity:
                repeated = repeated or identity in seen
                seen.add(identity)
    asked = requests > 0 or agent_kind == "model"
    found = (cached, repeated, asked and requests < completed)
    return [word for word, holds in zip(EVIDENCE, found, strict=True) if holds]
