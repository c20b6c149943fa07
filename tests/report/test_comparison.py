"""Comparisons of real runs of agents with known odds."""

import copy
import random

import pytest

from impact_twin.agents import load_source
from impact_twin.errors import InputError
from impact_twin.procurement.suite import load_suite
from impact_twin.report.comparison import compare_reports
from impact_twin.report.comparison_text import render_comparison
from impact_twin.report.model import build_report
from impact_twin.trials.plan import make_plan
from impact_twin.trials.runner import run

CAREFUL_MODULE = """
from impact_twin.agents.demo import Careful, Wavering
class Agent:
    name = "{name}"
    def __init__(self, seed):
        self.seed = seed
    def run(self, query, tools, *, system_directive=""):
        answer = Careful(self.seed).run(query, tools, system_directive=system_directive)
        return f"{{answer}} (case {{self.seed}})"
def build(seed):
    return Agent(seed)
"""


def report_of(spec, folder, trials=10, seed=0, pairs=None):
    suite = load_suite()
    source = load_source(spec)
    source.prepare()
    plan = make_plan(suite, source, trials=trials, seed=seed, pairs=pairs)
    return build_report(run(plan, suite, source, folder), suite)


@pytest.fixture(scope="module")
def wavering(tmp_path_factory):
    spec = {"kind": "demo", "name": "wavering", "label": None}
    return report_of(spec, tmp_path_factory.mktemp("wavering"))


@pytest.fixture(scope="module")
def careful(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module")
    (folder / "comparison_careful.py").write_text(CAREFUL_MODULE.format(name="careful"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        spec = {"kind": "factory", "target": "comparison_careful:build", "label": None}
        return report_of(spec, tmp_path_factory.mktemp("careful"))


def rate(result, name, number=0):
    (found,) = (row for row in result["comparisons"][number]["rates"] if row["rate"] == name)
    return found


def test_a_careful_agent_is_better_than_a_wavering_one(wavering, careful):
    result = compare_reports([("a", wavering), ("b", careful)])
    found = rate(result, "secure_utility")
    assert found["verdict"] == "better"
    assert found["interval"][0] > 0
    assert found["p_value"] < 0.05
    assert rate(result, "attack_success")["verdict"] == "better"
    assert rate(result, "benign_utility")["verdict"] == "no difference shown"
    assert [row["pair"] for row in found["pairs"]] == wavering["plan"]["pairs"]


def test_the_other_way_round_it_is_worse_by_as_much(wavering, careful):
    forth = rate(compare_reports([("a", wavering), ("b", careful)]), "secure_utility")
    back = rate(compare_reports([("a", careful), ("b", wavering)]), "secure_utility")
    assert back["verdict"] == "worse"
    assert back["difference"] == -forth["difference"]
    assert back["interval"] == pytest.approx([-end for end in reversed(forth["interval"])])


def test_more_comparisons_are_each_made_at_a_higher_confidence(wavering, careful):
    two = compare_reports([("a", wavering), ("b", careful)])
    three = compare_reports([("a", wavering), ("b", careful), ("c", careful)])
    assert (two["confidence_each"], three["confidence_each"]) == (0.95, 0.975)
    narrow, wide = rate(two, "secure_utility"), rate(three, "secure_utility")
    assert wide["interval"][0] < narrow["interval"][0]
    assert rate(three, "secure_utility", 1) == wide


def test_identical_repeats_give_no_verdict(wavering, tmp_path):
    spec = {"kind": "demo", "name": "careful", "label": None}
    result = compare_reports([("a", wavering), ("b", report_of(spec, tmp_path))])
    found = rate(result, "secure_utility")
    assert (found["verdict"], found["interval"], found["p_value"]) == ("withheld", None, None)
    assert any("no information" in note for note in result["notes"])


def test_unresolved_cases_widen_the_interval(wavering, careful):
    shorter = copy.deepcopy(careful)
    for row in random.Random(3).sample(shorter["pair_trials"], 15):
        row["poisoned"] |= {"termination": "not_run", "trace": None, "attempts": []}
        row["outcome"] = "unresolved"
    known = rate(compare_reports([("a", wavering), ("b", careful)]), "secure_utility")
    found = rate(compare_reports([("a", wavering), ("b", shorter)]), "secure_utility")
    assert found["b"] == {"count": 35, "unresolved": 15, "n": 50}
    assert found["interval"][0] < known["interval"][0]
    assert found["bounds"][0] < found["bounds"][1]
    assert "+15?/50" in render_comparison(compare_reports([("a", wavering), ("b", shorter)]))


def test_other_suites_and_pairs_are_refused_by_name(wavering, tmp_path):
    other = copy.deepcopy(wavering)
    other["identity"]["suite"]["digest"] = "sha256:" + "0" * 64
    with pytest.raises(InputError, match=r"second: not comparable with first.*texts, facts or"):
        compare_reports([("first", wavering), ("second", other)])
    spec = {"kind": "demo", "name": "wavering", "label": None}
    part = report_of(spec, tmp_path, trials=1, pairs=["award-bias"])
    with pytest.raises(InputError, match="it ran award-bias"):
        compare_reports([("first", wavering), ("second", part)])
    with pytest.raises(InputError, match="two reports"):
        compare_reports([("first", wavering)])


@pytest.mark.parametrize("confidence", [0.0, 1.0, float("nan")])
def test_an_impossible_confidence_is_refused(wavering, confidence):
    with pytest.raises(InputError, match="--confidence"):
        compare_reports([("a", wavering), ("b", wavering)], confidence)


def test_the_text_fits_80_columns_and_shows_every_pair(wavering, careful):
    hostile = "run\x1b[31m\u202e" + "x" * 200
    text = render_comparison(compare_reports([("a", wavering), (hostile, careful)]))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "\x1b" not in text
    assert text.count("eligibility-override") == 3
