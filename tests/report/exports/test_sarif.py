import json
from pathlib import Path

import jsonschema
import pytest

from impact_twin.procurement.model import CONTROLS
from impact_twin.report.evidence import suite_of_report
from impact_twin.report.sarif import RULES, sarif_text

SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0-rtm.5.json").read_bytes())
CHECK = jsonschema.Draft4Validator(SCHEMA)


def run_of(report):
    return json.loads(sarif_text(report, suite_of_report(report)))["runs"][0]


def test_the_schema_refuses_what_is_no_log():
    assert list(CHECK.iter_errors({"version": "2.1.0", "runs": [{"results": []}]}))


def test_every_log_keeps_to_the_official_schema(each):
    report, suite = each
    text = sarif_text(report, suite)
    assert text.isascii()
    assert not [error.message for error in CHECK.iter_errors(json.loads(text))]


def test_there_is_one_rule_a_control(reports):
    rules = run_of(reports["demo"])["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CONTROLS) == list(RULES)


@pytest.mark.parametrize("name", ["demo", "mixed", "one pair", "hostile"])
def test_results_are_the_broken_controls(reports, name):
    report = reports[name]
    expected = {}
    for item in report["pair_trials"]:
        for twin in ("clean", "poisoned"):
            trace = report["traces"].get(item[twin]["trace"])
            for control in trace["violations"] if trace else ():
                found = expected.setdefault((item["pair"], control), {"clean": [], "poisoned": []})
                found[twin].append(item["trial"])
    assert expected
    run = run_of(report)
    told = {(found["properties"]["pair"], found["ruleId"]): found for found in run["results"]}
    assert set(told) == set(expected)
    for key, found in told.items():
        assert found["properties"]["cleanTrials"] == expected[key]["clean"]
        assert found["properties"]["poisonedTrials"] == expected[key]["poisoned"]
        assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == found["ruleId"]
        harmed = any(
            item["outcome"] == "compromised"
            for item in report["pair_trials"]
            if item["pair"] == key[0] and item["trial"] in expected[key]["poisoned"]
        )
        assert found["level"] == ("error" if harmed else "warning")


def test_a_harm_that_the_poison_did_not_cause_is_a_warning(reports):
    report = {**reports["demo"]}
    assert {found["level"] for found in run_of(report)["results"]} == {"error"}
    report["pair_trials"] = [
        {**item, "outcome": "unsafe_baseline"} for item in report["pair_trials"]
    ]
    assert {found["level"] for found in run_of(report)["results"]} == {"warning"}


def test_places_are_files_of_the_released_suite(reports):
    root = Path(__file__).parents[3]
    for found in run_of(reports["demo"])["results"]:
        place = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert (root / place).is_file()


def test_fingerprints_are_those_of_pair_and_control(reports):
    first, second = (run_of(reports[name])["results"] for name in ("demo", "mixed"))
    marks = [
        {
            (found["properties"]["pair"], found["ruleId"]): found["partialFingerprints"]
            for found in results
        }
        for results in (first, second)
    ]
    common = set(marks[0]) & set(marks[1])
    assert common
    assert all(marks[0][key] == marks[1][key] for key in common)
    assert len({str(mark) for mark in marks[0].values()}) == len(marks[0])


def test_whether_the_run_is_whole(reports):
    assert run_of(reports["demo"])["invocations"][0]["executionSuccessful"]
    for name in ("nothing ran", "one pair"):
        invocation = run_of(reports[name])["invocations"][0]
        assert not invocation["executionSuccessful"]
        codes = [item["descriptor"]["id"] for item in invocation["toolExecutionNotifications"]]
        assert codes == [item["code"] for item in reports[name]["summary"]["warnings"]]


def test_messages_hold_no_links_and_no_placeholders(reports):
    for found in run_of(reports["hostile"])["invocations"][0]["toolExecutionNotifications"]:
        text = found["message"]["text"]
        assert r"\[link\](http://x.example)" in text
        assert "{{0}}" in text
        assert r"\\x1b" in text
