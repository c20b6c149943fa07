import copy

import pytest

from impact_twin.agents import load_source
from impact_twin.errors import InputError
from impact_twin.procurement.suite import load_suite
from impact_twin.report.model import build_report
from impact_twin.report.planning import Questions, plan_trials, render_plan
from impact_twin.statistics.intervals import wilson
from impact_twin.trials.plan import make_plan
from impact_twin.trials.runner import run


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    suite = load_suite()
    source = load_source({"kind": "demo", "name": "careful", "label": None})
    source.prepare()
    plan = make_plan(suite, source, trials=2)
    return build_report(run(plan, suite, source, tmp_path_factory.mktemp("pilot")), suite)


def only(**asked):
    (answer,) = plan_trials(Questions(**asked))["answers"]
    return answer


def test_the_gate_of_the_design_needs_sixteen():
    answer = only(gate="secure_utility >= 0.8")
    assert (answer["n"], answer["trials"], answer["trials_per_pair"]) == (16, 4, 16)
    assert only(gate="attack_success <= 20%")["n"] == 16


def test_a_gate_with_failures_passes_with_n_and_not_with_one_less():
    n = only(gate="secure_utility >= 0.8", failures=2)["n"]
    assert wilson(n - 2, n, 0.95).lo >= 0.8
    assert wilson(n - 3, n - 1, 0.95).lo < 0.8


def test_the_half_width_holds_with_n_and_not_with_one_less():
    n = only(half_width=0.1, rate=0.5)["n"]
    width = [interval.hi - interval.lo for interval in (wilson(n // 2, n, 0.95),)]
    assert width[0] / 2 <= 0.1001
    assert n == 93


def test_the_flip_rate_is_the_bound_that_a_stable_pair_is_printed_with():
    answer = only(flip_rate=0.1)
    assert answer["trials_per_pair"] == 29
    assert answer["trials"] > 29


def test_telling_two_agents_apart_takes_more_for_smaller_differences():
    far, near = only(apart=(0.5, 0.9)), only(apart=(0.6, 0.8))
    assert far["trials"] < near["trials"]
    assert near["trials_per_pair"] is None


def test_a_pilot_gives_time_and_says_what_it_does_not_know(pilot):
    result = plan_trials(Questions(half_width=0.1), pilot)
    (answer,) = result["answers"]
    assert answer["estimate"]["case_seconds"] > 0
    assert answer["estimate"]["cost_usd"] is None
    text = render_plan(result, 4)
    assert "cost unknown" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_cost_is_scaled_from_the_priced_cases_only(pilot):
    priced = copy.deepcopy(pilot)
    for number, row in enumerate(priced["pair_trials"]):
        for twin in ("clean", "poisoned"):
            row[twin]["usage"] = {
                "input_tokens": 90,
                "output_tokens": 10,
                "cost_usd": 0.02 if number % 2 else None,
            }
    result = plan_trials(Questions(gate="secure_utility >= 0.8"), priced)
    (answer,) = result["answers"]
    assert answer["trials"] == 4
    assert answer["estimate"]["tokens"] == 4 * 10 * 100
    assert answer["estimate"]["cost_usd"] == pytest.approx(4 * 10 * 0.02)


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        ({}, "nothing is asked"),
        ({"half_width": 0.0}, "--half-width"),
        ({"half_width": float("nan")}, "--half-width"),
        ({"gate": "secure_utility >= 1"}, "--gate"),
        ({"gate": "nonsense"}, "--gate"),
        ({"gate": "secure_utility >= 0.5", "failures": -1}, "--gate"),
        ({"flip_rate": 1.0}, "--flip-rate"),
        ({"apart": (0.5, 0.5)}, "--apart"),
        ({"apart": (0.5, 1.5)}, "--apart"),
        ({"half_width": 0.1, "pairs": 0}, "--pairs"),
    ],
)
def test_impossible_questions_are_refused(asked, option):
    with pytest.raises(InputError, match=option):
        plan_trials(Questions(**asked))
