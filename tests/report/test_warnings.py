import json
from dataclasses import replace

import pytest

from impact_twin.agents.protocol import Usage
from impact_twin.report.model import build_report
from impact_twin.report.warnings import CODES, NO_RESULT
from impact_twin.trials.plan import Limits

VARIED = "rfrfr"


def codes(report):
    return [item["code"] for item in report["summary"]["warnings"]]


def text(report, code):
    return next(item["text"] for item in report["summary"]["warnings"] if item["code"] == code)


def varied(stage, letters=VARIED):
    return dict.fromkeys(stage.pairs, letters)


def changed(stage, run, change, chosen=lambda key: True):
    cases = {key: change(record) if chosen(key) else record for key, record in run.cases.items()}
    return build_report(replace(run, cases=cases), stage.suite)


def test_a_full_run_that_varies_has_no_warning(stage):
    assert codes(stage.report(varied(stage))) == []


def test_the_codes_are_those_of_the_schema(suite):
    from impact_twin.resources import data_folder

    schema = json.loads((data_folder("schemas") / "1" / "summary.schema.json").read_text())
    listed = schema["properties"]["warnings"]["items"]["properties"]["code"]["enum"]
    assert list(CODES) == listed
    assert set(CODES) >= NO_RESULT


def test_an_all_error_run_says_so_first(stage):
    run = stage.run(varied(stage, "ttttt"))
    timed_out = {key: run.cases[key._replace(twin="poisoned")] for key in run.cases}
    report = build_report(
        replace(run, cases={key: replace(r, key=key) for key, r in timed_out.items()}), stage.suite
    )
    assert codes(report)[0] == "all_error"
    assert "50 timeout" in text(report, "all_error")


@pytest.mark.parametrize("stopped", ["", "the budget of 1 US dollar is spent"])
def test_a_run_that_ended_early(stage, stopped):
    report = stage.report(varied(stage, "rfufr"), stopped=stopped)
    assert codes(report) == ["stopped_early", "unresolved"]
    assert "10 of 50 cases have no record" in text(report, "stopped_early")
    assert stopped in text(report, "stopped_early")
    assert "5 of 25 pair-trials are unresolved" in text(report, "unresolved")


def test_a_custom_and_a_partial_suite(stage):
    run = stage.run({"award-bias": VARIED})
    suite = replace(stage.suite, bundled=False)
    assert codes(build_report(run, suite)) == ["custom_suite", "partial_suite"]


def test_no_variation_in_the_whole_suite_and_in_one_pair(stage):
    report = stage.report(varied(stage, "rrrrr"))
    assert codes(report) == ["replicates"]
    assert "withheld" in text(report, "replicates")
    scripts = {**varied(stage), "award-bias": "rrrrr"}
    assert "No variation seen in award-bias:" in text(stage.report(scripts), "replicates")


def test_copied_runs_name_the_evidence(stage):
    run = stage.run(varied(stage))
    from impact_twin.agents.protocol import ModelCall

    def answered_by_cache(record):
        return replace(record, model_calls=(ModelCall(1.0, 0.1, cached=True, response_id="x"),))

    report = changed(stage, run, answered_by_cache)
    words = text(report, "replicates")
    assert "our cache answered" in words
    assert "a response id repeats" in words


def test_unexposed_cases(stage):
    report = stage.report(varied(stage, "rftfr"))
    assert codes(report) == ["unexposed"]
    assert "In 5 of 25 poisoned cases" in text(report, "unexposed")


def test_too_few_trials(stage):
    assert codes(stage.report(varied(stage, "rrfr"))) == ["too_few_trials"]


def test_drift_and_its_direction(stage):
    report = stage.report(varied(stage, "r" * 6 + "f" * 6))
    drifts = [item["text"] for item in report["summary"]["warnings"] if item["code"] == "drift"]
    assert any("attack_success rises" in words for words in drifts)
    assert any("secure_utility falls" in words for words in drifts)


def test_an_effect_of_twin_order(stage):
    run = stage.run(varied(stage, "rf" * 8))
    position = {}
    for place, (key, record) in enumerate(run.cases.items()):
        # In the trials in which the poison works, the poisoned twin started first.
        swap = key.trial % 2 == 0
        position[key] = place + (1 if swap and key.twin == "clean" else -1 if swap else 0)
        assert record.position == place
    cases = {key: replace(record, position=position[key]) for key, record in run.cases.items()}
    report = build_report(replace(run, cases=cases), stage.suite)
    assert "twin_order" in codes(report)
    assert "40 of 40 when the poisoned one did, 0 of 40" in text(report, "twin_order")


def test_changed_delivery(stage):
    run = stage.run(varied(stage))
    for word in ("removed", "altered"):
        report = changed(
            stage,
            run,
            lambda record, word=word: replace(record, delivered=word, delivered_text="[redacted]"),
            lambda key: key.twin == "poisoned" and key.trial == 1,
        )
        assert codes(report) == ["changed_delivery"]
        assert "[redacted]" in report["texts"].values()


def test_shared_instances(stage):
    report = changed(stage, stage.run(varied(stage)), lambda record: replace(record, instance=1))
    assert codes(report) == ["shared_instances"]


@pytest.mark.parametrize(("times", "words"), [(1, "once"), (3, "3 times")])
def test_resumed(stage, times, words):
    report = stage.report(varied(stage), concurrency=(4,) * (times + 1))
    assert codes(report) == ["resumed"]
    assert words in text(report, "resumed")


def test_late_calls(stage):
    report = changed(
        stage,
        stage.run(varied(stage)),
        lambda record: replace(record, late_calls=2),
        lambda key: key.trial == 1 and key.twin == "clean",
    )
    assert codes(report) == ["late_calls"]
    assert "In 5 cases" in text(report, "late_calls")


def test_a_budget_without_known_costs(stage):
    def used(record):
        return replace(record, usage=Usage(100, 10, None))

    free = stage.run(varied(stage))
    assert codes(changed(stage, free, used)) == []
    plan = stage.plan(5, limits=Limits(max_cost_usd=2.5))
    report = changed(stage, stage.run(varied(stage), plan=plan), used)
    assert codes(report) == ["budget_cost_unknown"]
    assert "2.5 US dollars" in text(report, "budget_cost_unknown")


def test_notes_of_the_run(stage):
    report = stage.report(varied(stage), notes=("a budget was raised", "a line was torn"))
    assert codes(report) == ["note", "note"]
