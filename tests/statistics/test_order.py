"""Drift over the run and twin order."""

import dataclasses

import numpy as np
import pytest

from impact_twin.statistics.order import FALLING, LEVEL, RISING, order_effects
from impact_twin.statistics.table import CaseObservation, Observation, ObservationTable


def run(rows, *, poisoned_first=lambda trial: False):
    """A table from pair -> string of 1 (attack succeeded), 0, or ? (unresolved), in start order."""
    listed = []
    for pair, letters in rows.items():
        for trial, letter in enumerate(letters, 1):
            known = letter != "?"
            harm = letter == "1"
            early, late = 10 * trial, 10 * trial + 1
            starts = (late, early) if poisoned_first(trial) else (early, late)
            clean = CaseObservation(True, mission=True, start=starts[0])
            poisoned = CaseObservation(
                known, mission=not harm, violated=harm, goal=harm, exposed=True, start=starts[1]
            )
            outcome = "compromised" if harm else ("resisted" if known else "unresolved")
            listed.append(Observation(pair, trial, outcome, clean, poisoned))
    return ObservationTable.from_rows(listed)


def test_the_reference_example(reference):
    line = reference["order_dependence"]["stratified_trend"]
    rows = {f"p{place}": "".join(map(str, row)) for place, row in enumerate(line["matrix"])}
    attack, secure = order_effects(run(rows)).trends
    assert (attack.rate, secure.rate) == ("attack_success", "secure_utility")
    assert attack.position_sum == line["T"]
    assert attack.p_value == pytest.approx(line["exact_two_sided_p"], abs=1e-9)
    assert (attack.direction, secure.direction) == (FALLING, RISING)
    assert secure.p_value == pytest.approx(attack.p_value, abs=1e-12)
    assert attack.p_holm == pytest.approx(2 * attack.p_value, abs=1e-12)
    assert attack.n == 50


def test_a_difference_between_pairs_is_no_trend():
    effects = order_effects(run({"a": "1111111111", "b": "0000000000"}))
    assert [trend.p_value for trend in effects.trends] == [1.0, 1.0]
    assert [trend.direction for trend in effects.trends] == [LEVEL, LEVEL]


def test_it_is_the_start_order_that_counts_not_the_trial():
    table = run({"a": "1111100000"})
    random = np.random.default_rng(0)
    start = random.permutation(10).astype(float)
    moved = dataclasses.replace(table, poisoned=dataclasses.replace(table.poisoned, start=start))
    wanted = int((np.argsort(np.argsort(start)) + 1)[:5].sum())
    assert order_effects(moved).trends[0].position_sum == wanted
    scaled = dataclasses.replace(table.poisoned, start=start * 1e9 - 5)
    again = dataclasses.replace(table, poisoned=scaled)
    assert order_effects(again).trends == order_effects(moved).trends


def test_unresolved_cases_are_left_out_of_the_positions():
    with_gaps, without = run({"a": "11??1?0000"}), run({"a": "1110000"})
    assert order_effects(with_gaps).trends == order_effects(without).trends


def test_cases_without_a_start_keep_the_order_of_their_trials():
    table = run({"a": "1100"})
    blank = np.full(4, np.nan)
    nameless = dataclasses.replace(table, poisoned=dataclasses.replace(table.poisoned, start=blank))
    effects = order_effects(nameless)
    assert effects.trends[0].position_sum == 3
    assert effects.twin_order[0].poisoned_first == (0, 0)


def test_the_order_of_the_rows_does_not_matter():
    table = run({"a": "110010", "b": "010110"}, poisoned_first=lambda trial: trial % 2 == 0)
    effects = order_effects(table)
    random = np.random.default_rng(3)
    for _ in range(20):
        assert order_effects(table.select(random.permutation(12))) == effects
    assert order_effects(table.select(np.arange(12)[::-1])) == effects


def test_twin_order_apart_from_drift():
    effects = order_effects(run({"a": "1010101010"}, poisoned_first=lambda trial: trial % 2 == 1))
    attack = effects.twin_order[0]
    assert (attack.poisoned_first, attack.clean_first) == ((5, 5), (0, 5))
    assert attack.p_value == pytest.approx(2 / 252)
    assert attack.p_holm == pytest.approx(4 / 252)
    assert effects.trends[0].p_value > 0.5


def test_the_trend_test_keeps_its_level():
    random = np.random.default_rng(11)
    rejected = 0
    for _ in range(200):
        letters = {f"p{p}": "".join(random.choice(["0", "1"], 8, p=[0.7, 0.3])) for p in range(3)}
        trends = order_effects(run(letters)).trends
        rejected += min(trend.p_holm for trend in trends) <= 0.05
    assert rejected <= 18
