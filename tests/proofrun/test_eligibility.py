"""What stands against a board entry; each reason by itself, on a report that is fine otherwise."""

import json

import pytest
from proofrun_tamper import cases, reseal

from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.proofrun.eligibility import CODES, complete_trials, eligibility_of
from impact_twin.report.cases import case_json


def codes(report):
    return [reason.code for reason in eligibility_of(report).reasons]


def unresolve(report, count):
    for row in report["pair_trials"][-count:]:
        row["poisoned"] = case_json(None, {})
    report["identity"]["run"]["stopped"] = "out of money"


@pytest.mark.parametrize("name", ["target", "model"])
def test_an_agent_that_is_named_otherwise_than_it_was_made_is_refused(good, verifier, name):
    good["report"]["identity"]["agent"][name] = "mine:build"
    good["report"]["plan"]["spec"][name] = "other:build"
    found = verifier.verify(bundle_bytes(reseal(good)))
    assert found.failed is not None
    assert found.failed.name == "plan"


def test_a_good_report_is_eligible(good):
    assert codes(good["report"]) == []
    assert eligibility_of(good["report"]).eligible
    assert complete_trials(good["report"]) == 5


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda report: report["plan"]["spec"].update(kind="demo"), "demo_agent"),
        (lambda report: report["plan"]["spec"].update(target="impact_twin.agents:x"), "demo_agent"),
        (lambda report: report["plan"]["spec"].update(target="impact_twin:x"), "demo_agent"),
        (lambda report: report["identity"]["suite"].update(bundled=False), "custom_suite"),
        (lambda report: report["plan"].update(full_suite=False), "partial_suite"),
        (lambda report: report["identity"]["agent"].update(instances="shared"), "shared_instances"),
        (lambda report: report["plan"].update(confidence=0.9), "confidence"),
        (
            # Also when no look is told of.
            lambda report: report["identity"]["run"].update(until="exposed >= 0.2"),
            "looked_early",
        ),
        (lambda report: report["summary"]["replicates"].update(label="copied"), "copied"),
        (
            lambda report: report["summary"]["replicates"].update(label="no variation seen"),
            "no_variation",
        ),
    ],
)
def test_each_reason_by_itself(good, change, code):
    change(good["report"])
    assert codes(good["report"]) == [code]
    assert code in CODES


@pytest.mark.parametrize(
    ("count", "found"),
    [(2, {"few_trials"}), (3, {"few_trials", "unresolved", "unexposed"})],
)
def test_hiding_cases_counts_against_a_report(good, suite, verifier, count, found):
    unresolve(good["report"], count)
    reseal(good, suite, "outcomes")
    assert set(codes(good["report"])) == found


def test_copied_model_answers_are_seen(good, suite, verifier):
    for case in cases(good["report"]):
        for call in case["model_calls"]:
            call["response_id"] = "the same"
    reseal(good, suite, "figures")
    verification = verifier.verify(bundle_bytes(good))
    assert verification.valid
    assert [reason.code for reason in verification.eligibility.reasons] == ["copied"]


def test_eligibility_is_apart_from_validity(messy_bytes, verifier):
    verification = verifier.verify(messy_bytes)
    assert verification.valid
    assert not verification.eligibility.eligible
    assert all(reason.text.endswith(".") for reason in verification.eligibility.reasons)
    assert json.loads(messy_bytes)["report"] == verification.bundle["report"]
