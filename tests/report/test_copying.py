import pytest

from impact_twin.report.copying import (
    CACHED,
    FEWER_REQUESTS_THAN_CASES,
    RESPONSE_ID_REPEATED,
    copying_evidence,
)


def case(*calls, termination="completed", requests=None):
    count = len(calls) if requests is None else requests
    return {
        "termination": termination,
        "attempts": [{"requests": count}],
        "model_calls": [{"response_id": identity, "cached": cached} for identity, cached in calls],
    }


@pytest.mark.parametrize(
    ("cases", "kind", "expected"),
    [
        ([case(("a", False)), case(("b", False))], "model", []),
        ([case(("a", False)), case(("a", False))], "model", [RESPONSE_ID_REPEATED]),
        ([case(("a", False), ("a", False))], "model", [RESPONSE_ID_REPEATED]),
        ([case(("a", False)), case(("b", True))], "model", [CACHED]),
        # No id, or an empty one, says nothing.
        ([case((None, False), ("", False)), case((None, False), ("", False))], "model", []),
        ([case(("a", False)), case()], "model", [FEWER_REQUESTS_THAN_CASES]),
        ([case(), case()], "model", [FEWER_REQUESTS_THAN_CASES]),
        ([case(("a", False)), case()], "pipeline", [FEWER_REQUESTS_THAN_CASES]),
        # An agent that asks no model that we could see.
        ([case(), case()], "demo", []),
        ([case(), case()], "factory", []),
        # A case that failed before its first request is no copy.
        ([case(("a", False)), case(termination="infrastructure_error")], "model", []),
        (
            [case(("a", True)), case(("a", True), requests=0)],
            "model",
            [CACHED, RESPONSE_ID_REPEATED, FEWER_REQUESTS_THAN_CASES],
        ),
    ],
)
def test_evidence(cases, kind, expected):
    assert copying_evidence(cases, kind) == expected
