"""How many trials a question needs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.statistics.conditional import conditional_test
from impact_twin.statistics.difference import TwoGroups
from impact_twin.statistics.intervals import two_sided_z, wilson
from impact_twin.statistics.planning import (
    comparison_power,
    gate_power,
    n_for_flip_rate,
    n_for_gate,
    n_for_half_width,
    n_for_upper_gate,
    trials_to_tell_apart,
)
from impact_twin.statistics.stability import other_outcome_bound


def test_reference_values(reference):
    section = reference["planning"]
    for line in section["n_halfwidth"]:
        assert n_for_half_width(line["h"]) == line["worst_case_formula"] == line["search_p5"]
        assert n_for_half_width(line["h"], 0.9) == line["p_9"]
        assert n_for_half_width(line["h"], 0.95) == line["p_95"]
    for line in section["n_gate"]:
        assert n_for_gate(line["L"], line["failures"]) == line["wilson95"]
        assert n_for_flip_rate(1 - line["L"], line["failures"]) == line["exact_one_sided95"]
    for line in section["gate_power"]:
        found = gate_power(line["n"], line["p"], line["L"])
        assert found == pytest.approx(line["P_pass"], abs=1e-9)
    for text, line in reference["stability"]["n_needed"].items():
        rate = float(text)
        assert n_for_flip_rate(rate) == line["exact_one_sided95"]
        assert n_for_flip_rate(rate, 1) == line["exact_one_sided95_one_deviation"]
        assert n_for_flip_rate(rate, confidence=0.99) == line["five_pairs_bonferroni_exact"]


def test_false_claims_of_a_gate(reference):
    for line in reference["sequential"]["fixed_n_false_claim"]:
        assert gate_power(line["n"], 0.8, 0.8) == pytest.approx(line["P"], abs=1e-9)


def test_a_gate_at_80_percent_needs_16_perfect_cases():
    assert n_for_gate(0.8) == 16
    assert n_for_upper_gate(0.2) == 16


@given(st.floats(0.05, 0.98), st.integers(0, 4), st.floats(0.6, 0.99))
def test_a_gate_passes_at_its_n_and_not_before(threshold, failures, confidence):
    n = n_for_gate(threshold, failures, confidence)
    assert wilson(n - failures, n, confidence).lo >= threshold
    if n > failures + 1:
        assert wilson(n - 1 - failures, n - 1, confidence).lo < threshold
    if failures == 0:
        square = two_sided_z(confidence) ** 2
        formula = square * threshold / (1 - threshold)
        assert n in (math.ceil(formula - 1e-9), math.ceil(formula + 1e-9), 1)


@given(st.floats(0.02, 0.6), st.floats(0.6, 0.99))
def test_a_certified_flip_rate_is_the_bound_of_a_stable_pair(rate, confidence):
    n = n_for_flip_rate(rate, confidence=confidence)
    assert other_outcome_bound(n, confidence) <= rate + 1e-12
    if n > 1:
        assert other_outcome_bound(n - 1, confidence) > rate - 1e-12


@given(st.floats(0.02, 0.4), st.floats(0, 1))
def test_a_half_width_is_reached_and_needs_its_n(half_width, rate):
    n = n_for_half_width(half_width, rate)
    assert wilson(rate * n, n).width / 2 <= half_width
    if n > 1:
        assert wilson(rate * (n - 1), n - 1).width / 2 > half_width
    assert n <= n_for_half_width(half_width)


def test_the_simulated_power_follows_the_exact_test():
    random = np.random.default_rng(6)
    for rate_a, rate_b, trials in ((0.9, 0.6, 8), (0.95, 0.8, 20)):
        rejected, runs = 0, 400
        for _ in range(runs):
            draws = zip(
                random.binomial(trials, rate_a, 5).tolist(),
                random.binomial(trials, rate_b, 5).tolist(),
                strict=True,
            )
            tables = [TwoGroups(a, trials, b, trials) for a, b in draws]
            rejected += conditional_test(tables).p_value <= 0.05
        found = comparison_power(rate_a, rate_b, trials)
        assert found.power == pytest.approx(rejected / runs, abs=0.09)


def test_telling_two_agents_apart():
    found = trials_to_tell_apart(0.9, 0.7)
    assert found.power >= 0.8
    assert comparison_power(0.9, 0.7, found.trials - 1).power < 0.8
    assert trials_to_tell_apart(0.7, 0.9).trials == pytest.approx(found.trials, abs=1)
    assert trials_to_tell_apart(0.9, 0.7, power=0.95).trials > found.trials
    assert trials_to_tell_apart(0.9, 0.7, pairs=1).trials > 4 * found.trials
    assert trials_to_tell_apart(1.0, 0.0).trials == 2
    assert found == trials_to_tell_apart(0.9, 0.7)


@pytest.mark.parametrize(
    "call",
    [
        lambda: n_for_half_width(0.0),
        lambda: n_for_half_width(0.5),
        lambda: n_for_half_width(0.1, 1.2),
        lambda: n_for_half_width(1e-5),
        lambda: n_for_gate(1.0),
        lambda: n_for_gate(float("nan")),
        lambda: n_for_gate(0.8, -1),
        lambda: n_for_gate(0.8, 0, 1.0),
        lambda: n_for_flip_rate(0.0),
        lambda: gate_power(10, -0.1, 0.5),
        lambda: trials_to_tell_apart(0.5, 0.5),
        lambda: trials_to_tell_apart(0.5, 0.6, power=1.0),
        lambda: trials_to_tell_apart(0.5, 0.5001),
        lambda: comparison_power(0.5, 0.6, 0),
    ],
)
def test_numbers_outside_their_domain_are_refused(call):
    with pytest.raises(ValueError):
        call()
