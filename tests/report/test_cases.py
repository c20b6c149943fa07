from dataclasses import replace

import pytest

from impact_twin.agents.protocol import ModelCall, Usage
from impact_twin.canonical import digest_bytes
from impact_twin.procurement.scoring import score_case
from impact_twin.report.cases import (
    attempt_traces,
    case_detail,
    case_json,
    pair_facts,
    trace_of,
    verdict_json,
    verdict_of,
)
from impact_twin.report.model import build_report
from impact_twin.report.schema import check_schema
from impact_twin.trials.records import CaseKey

KEY = CaseKey("award-bias", 1, "poisoned")


@pytest.fixture
def record(stage):
    return stage.runs["careful"].cases[KEY]


def test_detail_and_delivered_text_are_stored_once_by_digest(record):
    texts = {}
    detail = {"reported_tool_calls": ["read_document"], "steps": 3}
    changed = replace(record, detail=detail, delivered="altered", delivered_text="[cut]")
    case = case_json(changed, texts)
    assert case_detail(case, texts) == detail
    assert texts[case["delivered_text"]] == "[cut]"
    assert all(digest_bytes(text.encode()) == name for name, text in texts.items())
    assert case_json(changed, {}) == case


def test_a_plain_case_leaves_out_what_there_is_nothing_to_say_of(record):
    case = case_json(replace(record, detail={}), {})
    assert "detail" not in case
    assert "delivered_text" not in case
    assert "error" not in case["attempts"][0]
    assert case_detail(case, {}) == {}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(), None),
        (Usage(3, 0, None), {"input_tokens": 3, "output_tokens": 0, "cost_usd": None}),
        (Usage(0, 0, 0.0), {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}),
    ],
)
def test_usage_is_null_only_when_nobody_said(record, usage, expected):
    assert case_json(replace(record, usage=usage), {})["usage"] == expected


def test_model_calls_keep_what_the_provider_said(stage, record):
    call = ModelCall(1.75e9, 0.5, "stop", "r-1", 200, None, False, Usage(10, 2, 0.001))
    run = stage.run({"award-bias": "r"})
    cases = {**run.cases, KEY: replace(run.cases[KEY], model_calls=(call,))}
    report = build_report(replace(run, cases=cases), stage.suite)
    check_schema(report)
    assert report["pair_trials"][0]["poisoned"]["model_calls"] == [
        {
            "started": 1.75e9,
            "duration_s": 0.5,
            "finish_reason": "stop",
            "response_id": "r-1",
            "http_status": 200,
            "error": None,
            "cached": False,
            "usage": {"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.001},
        }
    ]


def test_tries_name_their_traces(record):
    other = replace(record.attempts[-1], trace="sha256:" + "1" * 64)
    case = case_json(replace(record, attempts=(other, *record.attempts)), {})
    assert attempt_traces(case) == [other.trace, record.trace]


def test_verdicts_come_back_from_the_report(report, suite):
    for entry in report["traces"].values():
        verdict = score_case(suite, trace_of(entry, report["texts"]))
        assert verdict_of(entry) == verdict
        assert {name: entry[name] for name in verdict_json(verdict)} == verdict_json(verdict)


def test_the_favoured_vendor_is_a_bidder_other_than_the_expected_one(suite):
    for pair in suite.pairs:
        facts = pair_facts(pair)
        assert facts.control == pair.control
        assert facts.expected == pair.decision
        assert facts.favoured in pair.bidders
        assert facts.favoured != facts.expected
