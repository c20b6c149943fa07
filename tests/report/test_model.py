import copy
import json
import time
from dataclasses import replace

import pytest

from impact_twin.agents import load_source
from impact_twin.canonical import canonical_bytes, digest
from impact_twin.errors import InputError
from impact_twin.procurement.model import trace_digest
from impact_twin.report.cases import trace_json
from impact_twin.report.files import report_lines
from impact_twin.report.model import build_report, judge_records, plan_of
from impact_twin.report.schema import check_references, check_schema
from impact_twin.trials.plan import iter_cases, make_plan
from impact_twin.trials.records import CaseKey, RunData


def test_a_report_holds_every_planned_pair_trial_in_order(report):
    plan = report["plan"]
    assert [(item["trial"], item["pair"]) for item in report["pair_trials"]] == [
        (trial, pair) for trial in range(1, plan["trials"] + 1) for pair in plan["pairs"]
    ]


def test_a_report_keeps_to_its_schema(report):
    check_schema(report)
    check_references(report)
    assert list(report) == [
        "kind",
        "schema_version",
        "identity",
        "plan",
        "pair_trials",
        "traces",
        "texts",
        "summary",
    ]


def test_a_report_is_the_same_when_built_again(wavering, suite, report):
    again = build_report(wavering[1], suite)
    assert "".join(report_lines(again)) == "".join(report_lines(report))


def test_a_report_has_a_canonical_form(report):
    assert json.loads(canonical_bytes(report)) == report


def test_the_plan_comes_back_from_the_report(wavering, report):
    assert plan_of(report) == json.loads(json.dumps(wavering[1].plan))
    assert digest(plan_of(report)) == report["plan"]["digest"]


def test_traces_and_texts_are_what_their_digests_say(report):
    for name, entry in report["traces"].items():
        assert trace_digest(trace_json(entry)) == name
        assert entry["events"]


def test_order_and_first_are_the_planned_ones(wavering, report):
    planned = {}
    for key in iter_cases(wavering[1].plan):
        planned.setdefault((key.trial, key.pair), (len(planned), key.twin))
    for item in report["pair_trials"]:
        assert (item["order"], item["first"]) == planned[item["trial"], item["pair"]]
    assert {item["first"] for item in report["pair_trials"]} == {"clean", "poisoned"}


def test_positions_are_the_start_order(report):
    positions = [
        item[twin]["position"] for item in report["pair_trials"] for twin in ("clean", "poisoned")
    ]
    assert sorted(positions) == list(range(len(positions)))


def test_the_demo_agent_is_judged_as_it_acted(stage):
    scripts = dict.fromkeys(stage.pairs, "rf")
    outcomes = [
        (item["pair"], item["outcome"], item["targeted"])
        for item in stage.report(scripts)["pair_trials"]
    ]
    assert outcomes == [(pair, "resisted", False) for pair in stage.pairs] + [
        (pair, "compromised", True) for pair in stage.pairs
    ]


def test_missing_cases_are_not_run_and_unresolved(stage):
    report = stage.report({"award-bias": "ruu"})
    check_schema(report)
    outcomes = [item["outcome"] for item in report["pair_trials"]]
    assert outcomes == ["resisted", "unresolved", "unresolved"]
    missing = report["pair_trials"][1]
    assert missing["reasons"] == ["clean_not_run", "poisoned_not_run"]
    assert missing["clean"]["termination"] == "not_run"
    assert missing["clean"]["trace"] is missing["clean"]["position"] is None
    assert report["summary"]["aggregate"]["n"] == 3


def test_a_trace_that_is_missing_leaves_its_case_unreadable(stage):
    run = stage.run({"award-bias": "rf"})
    lost = run.cases[CaseKey("award-bias", 2, "poisoned")].trace
    traces = {name: trace for name, trace in run.traces.items() if name != lost}
    report = build_report(replace(run, traces=traces), stage.suite)
    check_schema(report)
    check_references(report)
    item = report["pair_trials"][1]
    assert (item["outcome"], item["reasons"]) == ("unresolved", ["poisoned_unreadable"])
    assert item["poisoned"]["trace"] == lost


def test_a_text_that_is_missing_leaves_its_cases_unreadable(stage):
    run = stage.run({"award-bias": "r"})
    report = build_report(replace(run, texts={}), stage.suite)
    assert report["pair_trials"][0]["reasons"] == ["clean_unreadable", "poisoned_unreadable"]
    assert report["traces"] == {}


def test_a_record_with_the_other_twins_trace_is_unreadable(stage):
    run = stage.run({"award-bias": "r"})
    clean, poisoned = (CaseKey("award-bias", 1, twin) for twin in ("clean", "poisoned"))
    cases = {**run.cases, poisoned: replace(run.cases[poisoned], trace=run.cases[clean].trace)}
    report = build_report(replace(run, cases=cases), stage.suite)
    assert report["pair_trials"][0]["outcome"] == "unresolved"


def test_earlier_tries_keep_their_traces(stage):
    run = stage.run({"award-bias": "e"})
    key = CaseKey("award-bias", 1, "poisoned")
    failed = run.cases[key]
    played = stage.runs["careful"].cases[key]
    record = replace(played, attempts=failed.attempts + played.attempts)
    report = build_report(replace(run, cases={**run.cases, key: record}), stage.suite)
    check_schema(report)
    first, last = report["pair_trials"][0]["poisoned"]["attempts"]
    assert first["trace"] in report["traces"]
    assert "trace" not in last
    assert first["error"] == {
        "kind": "rate_limit",
        "message": "429 too many requests",
        "http_status": 429,
    }
    assert report["pair_trials"][0]["outcome"] == "resisted"


def test_texts_that_no_trace_needs_are_left_out(stage):
    run = stage.run({"award-bias": "r"})
    extra = {"sha256:" + "0" * 64: "left over"}
    report = build_report(replace(run, texts={**run.texts, **extra}), stage.suite)
    assert "left over" not in report["texts"].values()
    used = {event["output"] for entry in report["traces"].values() for event in entry["events"]}
    assert set(report["texts"]) == used


def test_what_the_run_says_of_itself_stands_in_the_report(stage):
    look = {"trial": 1, "stop": False, "reason": "too wide"}
    report = stage.report(
        {"award-bias": "ru"},
        stopped="the budget is spent",
        concurrency=(4, 4, 2),
        notes=("n",),
        looks=(look,),
    )
    run = report["identity"]["run"]
    assert (run["stopped"], run["resumed"], run["notes"], run["looks"]) == (
        "the budget is spent",
        2,
        ["n"],
        [look],
    )
    assert plan_of(report) == json.loads(json.dumps(stage.plan(2, ["award-bias"]))) | {
        "created": report["plan"]["created"]
    }


def test_a_shared_agent_object_is_seen(stage):
    run = stage.run({"award-bias": "rr"})
    fresh = {
        key: replace(record, instance=number)
        for number, (key, record) in enumerate(run.cases.items())
    }
    shared = {key: replace(record, instance=7) for key, record in run.cases.items()}
    for cases, word in ((fresh, "fresh"), (shared, "shared"), (run.cases, "fresh")):
        report = build_report(replace(run, cases=cases), stage.suite)
        assert report["identity"]["agent"]["instances"] == word


def test_another_suite_is_refused(stage, report):
    other = replace(stage.suite, digest="sha256:" + "1" * 64)
    with pytest.raises(InputError, match="--suite"):
        build_report(stage.run({"award-bias": "r"}), other)


def test_records_are_judged_as_the_report_judges_them(wavering, suite, report):
    run = wavering[1]
    for item in report["pair_trials"]:
        records = [
            run.cases[CaseKey(item["pair"], item["trial"], twin)] for twin in ("clean", "poisoned")
        ]
        found = judge_records(suite, run, *records)
        assert (found.outcome, list(found.reasons)) == (item["outcome"], item["reasons"])


def test_building_leaves_the_run_alone(wavering, suite):
    run = wavering[1]
    before = copy.deepcopy((run.plan, run.traces, run.texts))
    build_report(run, suite)
    assert before == (run.plan, run.traces, run.texts)


def test_a_thousand_trials_of_a_deterministic_agent_stay_small(stage):
    """10,000 cases: the report under 5 MB, built in a few seconds."""
    trials = 1000
    source = load_source({"kind": "demo", "name": "careful", "label": None})
    plan = make_plan(stage.suite, source, trials=trials)
    played = stage.runs["careful"]
    cases = {}
    for position, key in enumerate(iter_cases(plan)):
        record = played.cases[CaseKey(key.pair, 1, key.twin)]
        cases[key] = replace(record, key=key, position=position, instance=position)
    run = RunData(plan=plan, cases=cases, traces=played.traces, texts=played.texts)
    began = time.process_time()
    report = build_report(run, stage.suite)
    seconds = time.process_time() - began
    size = sum(len(line) for line in report_lines(report))
    began = time.process_time()
    check_schema(report)
    check_references(report)
    checked = time.process_time() - began
    assert size < 5_000_000
    assert len(report["traces"]) == 10
    # Measured 1 s and 0.3 s; the bounds leave room for a slow machine.
    assert seconds < 10
    assert checked < 5
