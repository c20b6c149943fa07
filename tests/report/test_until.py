"""`repeat --until` on real runs: looks are recorded, and the stop fixes n."""

import copy

import pytest

from impact_twin.agents import load_source
from impact_twin.errors import InputError
from impact_twin.procurement.suite import load_suite
from impact_twin.report.files import load_report
from impact_twin.report.model import build_report, plan_of
from impact_twin.report.schema import check_references, check_schema
from impact_twin.report.summary import summary_of
from impact_twin.report.terminal import render_terminal
from impact_twin.report.until import Until, read_rule
from impact_twin.statistics.sequential import always_valid
from impact_twin.trials.plan import make_plan, plan_digest
from impact_twin.trials.runner import run


def run_until(folder, rule, trials):
    suite = load_suite()
    source = load_source({"kind": "demo", "name": "wavering", "label": None})
    source.prepare()
    plan = make_plan(suite, source, trials=trials, until=rule)
    data = run(plan, suite, source, folder, stop_rule=Until(rule, suite, plan), concurrency=8)
    return build_report(data, suite)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("until") / "run"
    return run_until(folder, "benign_utility >= 0.8", 30), folder


def test_the_run_stops_when_the_rule_is_settled_and_fixes_n(stopped):
    report, _ = stopped
    trials = report["plan"]["trials"]
    assert trials < report["plan"]["most_trials"] == 30
    assert report["summary"]["aggregate"]["n"] == 5 * trials
    assert report["summary"]["aggregate"]["classes"]["unresolved"] == 0
    assert report["identity"]["run"]["stopped"] == ""


def test_every_look_is_recorded_with_an_interval_that_allows_for_looking(stopped):
    report, _ = stopped
    looks = report["summary"]["sequential"]["looks"]
    assert [look["trial"] for look in looks] == list(range(1, report["plan"]["trials"] + 1))
    assert [look["verdict"] for look in looks] == ["continue"] * (len(looks) - 1) + ["holds"]
    last = looks[-1]
    expected = always_valid(last["count"], last["unresolved"], last["n"], 0.95)
    assert last["interval"] == pytest.approx(list(expected), abs=1e-11)
    wilson = report["summary"]["aggregate"]["rates"]["benign_utility"]["wilson"]
    assert last["interval"][0] < wilson[0]


def test_the_report_says_that_wilson_is_descriptive(stopped):
    report, _ = stopped
    assert "looked_early" in [warning["code"] for warning in report["summary"]["warnings"]]
    text = " ".join(render_terminal(report, width=80, color=False, ascii=True).split())
    assert "descriptive" in text
    assert "always-valid interval" in text


def test_the_report_keeps_its_schema_and_gives_its_plan_and_summary_back(stopped):
    report, folder = stopped
    check_schema(report)
    check_references(report)
    assert plan_digest(plan_of(report)) == report["plan"]["digest"]
    assert summary_of(report)["sequential"] == report["summary"]["sequential"]
    assert load_report(folder)["summary"]["sequential"] == report["summary"]["sequential"]


def test_a_stop_that_the_observations_do_not_give_is_refused(stopped):
    report, _ = stopped
    forged = copy.deepcopy(report)
    forged["identity"]["run"]["looks"][0]["stop"] = True
    with pytest.raises(InputError, match="looks do not follow"):
        check_references(forged)
    shorter = copy.deepcopy(report)
    shorter["identity"]["run"]["looks"][-1]["stop"] = False
    with pytest.raises(InputError, match=r"plan\.trials"):
        check_references(shorter)


def test_a_rule_that_is_never_settled_runs_the_whole_plan(tmp_path):
    report = run_until(tmp_path, "secure_utility +- 0.01", 3)
    assert report["plan"]["trials"] == report["plan"]["most_trials"] == 3
    assert report["summary"]["sequential"]["looks"][-1]["verdict"] == "continue"


def test_without_a_rule_there_are_no_looks(tmp_path):
    suite = load_suite()
    source = load_source({"kind": "demo", "name": "careful", "label": None})
    source.prepare()
    plan = make_plan(suite, source, trials=1)
    report = build_report(run(plan, suite, source, tmp_path), suite)
    assert report["summary"]["sequential"] is None
    assert report["identity"]["run"]["until"] is None


@pytest.mark.parametrize("text", ["", "secure_utility", "quality >= 0.5", "exposed >= 2"])
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(InputError, match="--until"):
        read_rule(text)
