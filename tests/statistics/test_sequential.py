"""Always-valid intervals and stop rules."""

from functools import cache
from math import comb, exp, lgamma, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.statistics.intervals import Interval, wilson
from impact_twin.statistics.sequential import (
    CONTINUE,
    FAILS,
    HOLDS,
    PRECISE,
    StopRule,
    always_valid,
    evaluate,
    look,
    looks,
    parse_rule,
)


@st.composite
def counts(draw):
    n = draw(st.integers(0, 200))
    k = draw(st.integers(0, n))
    return k, draw(st.integers(0, n - k)), n


def stopped_coverage(p, interval, stop, most):
    """Exact coverage and stop probability of a rule that looks after every case."""
    alive, covered, stopped = {0: 1.0}, 0.0, 0.0
    for n in range(1, most + 1):
        after = {}
        for k, mass in alive.items():
            after[k] = after.get(k, 0.0) + mass * (1 - p)
            after[k + 1] = after.get(k + 1, 0.0) + mass * p
        alive = {}
        for k, mass in after.items():
            found = interval(k, n)
            halts = stop(found)
            if halts or n == most:
                covered += mass * found.contains(p)
                stopped += mass * halts
            else:
                alive[k] = mass
    return covered, stopped


def test_reference_values(reference, agree):
    section = reference["sequential"]
    for line in section["cs_reference"]:
        k, n = line["k"], line["n"]
        tolerance = section["tolerance"]
        assert agree(always_valid(k, 0, n), line["beta_binomial_half"], tolerance)
        assert agree(always_valid(k, 0, n, prior=1.0), line["beta_binomial_uniform"], tolerance)
    for line in section["betting_reference_grid_0_001"]:
        assert agree(always_valid(line["k"], 0, line["n"]), line["bb_half"], tolerance)


def test_kept_values(kept, agree):
    for line in kept["sequential"]:
        assert agree(always_valid(line["k"], 0, line["n"]), line["interval"], 1e-9)


def test_gates_need_more_trials_than_a_fixed_n(reference):
    for line in reference["planning"]["n_gate"]:
        for prior, key in ((0.5, "bb_cs_half"), (1.0, "bb_cs_uniform")):
            if line[key] is not None and line["L"] <= 0.9:
                failures, n = line["failures"], line[key]
                assert always_valid(n - failures, 0, n, prior=prior).lo >= line["L"]
                assert always_valid(n - 1 - failures, 0, n - 1, prior=prior).lo < line["L"]


def test_coverage_when_stopping_at_a_threshold(reference):
    lines = reference["sequential"]["rule_B_stop_when_lower_gt_0_8"]
    for line in lines:
        if line["nmax"] != 50 or line["method"] not in ("wilson", "betabinomial_cs_jeffreys"):
            continue
        interval = wilson if line["method"] == "wilson" else lambda k, n: always_valid(k, 0, n)
        covered, stopped = stopped_coverage(line["p"], interval, lambda i: i.lo > 0.8, 50)
        assert covered == pytest.approx(line["coverage"], abs=1e-9)
        assert stopped == pytest.approx(line["P_stop_by_rule"], abs=1e-9)


def test_coverage_when_stopping_at_a_half_width(reference):
    rule = parse_rule("secure_utility +- 0.1")
    for line in reference["sequential"]["rule_A_stop_at_halfwidth"]:
        if line["method"] == "clopper_pearson" or line["p"] < 0.99:
            continue
        interval = wilson if line["method"] == "wilson" else lambda k, n: always_valid(k, 0, n)
        covered, stopped = stopped_coverage(
            line["p"], interval, lambda i: evaluate(rule, i) == PRECISE, 320
        )
        assert covered == pytest.approx(line["coverage"], abs=1e-9)
        assert stopped == pytest.approx(line["P_stop_by_rule"], abs=1e-9)


def test_it_is_rarely_wrong_at_any_look_and_wilson_often_is(reference):
    mixture = cache(lambda k, n: always_valid(k, 0, n))
    for line in reference["sequential"]["ever_miss_within_400"][2:]:
        for key, interval in (("bb_half", mixture), ("wilson_100", cache(wilson))):
            most = 400 if key == "bb_half" else 100
            p, alive = line["p"], np.array([1.0])
            for n in range(1, most + 1):
                alive = np.concatenate([alive * (1 - p), [0.0]]) + np.concatenate(
                    [[0.0], alive * p]
                )
                for k in np.flatnonzero(alive > 1e-13):
                    if not interval(int(k), n).contains(p):
                        alive[k] = 0.0
            assert 1 - alive.sum() == pytest.approx(line[key], abs=1e-9)


@given(counts(), st.floats(0.5, 0.99))
def test_contains_the_bounds_and_the_wilson_interval(numbers, confidence):
    k, u, n = numbers
    found = always_valid(k, u, n, confidence)
    assert 0 <= found.lo <= found.hi <= 1
    if n:
        assert found.lo <= k / n
        assert (k + u) / n <= found.hi
        assert found.lo <= wilson(k, n, confidence).lo + 1e-12


@given(counts())
def test_symmetric_and_monotone(numbers):
    k, u, n = numbers
    one, other = always_valid(k, 0, n), always_valid(n - k, 0, n)
    assert one.lo == pytest.approx(1 - other.hi, abs=1e-12)
    if k < n:
        assert always_valid(k + 1, 0, n).lo >= one.lo
    assert always_valid(k, u, n).lo == one.lo
    assert always_valid(k, u, n).hi == always_valid(k + u, 0, n).hi


@given(st.integers(1, 60), st.floats(0.8, 0.99))
def test_the_ends_solve_the_defining_equation(n, confidence):
    k = n // 2 + 1
    p = always_valid(k, 0, n, confidence).lo
    mixture = lgamma(0.5 + k) + lgamma(0.5 + n - k) - lgamma(1 + n) - 2 * lgamma(0.5)
    likelihood = k * log(p) + (n - k) * log(1 - p)
    assert exp(mixture - likelihood) == pytest.approx(1 / (1 - confidence), rel=1e-9)


def test_pairs_with_different_rates_keep_the_error_rate_after_whole_trials():
    """Ever missing the suite's mean, looking after each trial of five unlike pairs, is rare."""
    random = np.random.default_rng(8)
    shares = np.array([0.05, 0.5, 0.95, 1.0, 0.2])
    trials, runs = 60, 400
    totals = (random.random((runs, trials, 5)) < shares).sum(axis=2).cumsum(axis=1)
    known = {}
    missed = 0
    for run in totals:
        for trial, k in enumerate(run.tolist(), 1):
            key = (k, 5 * trial)
            if key not in known:
                known[key] = always_valid(k, 0, 5 * trial).contains(float(shares.mean()))
            if not known[key]:
                missed += 1
                break
    assert missed / runs <= 0.05


def test_planned_looks_inflate_the_false_claims_of_wilson(reference):
    for line in reference["sequential"]["planned_looks"][:3]:
        alive, last, claimed = {0: 1.0}, 0, 0.0
        for n in line["looks"]:
            after = {}
            for k, mass in alive.items():
                for more in range(n - last + 1):
                    chance = comb(n - last, more) * 0.8**more * 0.2 ** (n - last - more)
                    after[k + more] = after.get(k + more, 0.0) + mass * chance
            alive = {}
            for k, mass in after.items():
                if wilson(k, n, line["conf"]).lo > 0.8:
                    claimed += mass
                else:
                    alive[k] = mass
            last = n
        assert claimed == pytest.approx(line["P_false_claim_at_0_8"], abs=1e-9)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("secure_utility >= 0.8", StopRule("secure_utility", "above", 0.8)),
        (" attack_success<=.1 ", StopRule("attack_success", "below", 0.1)),
        ("resisted +- 1e-1", StopRule("resisted", "half_width", 0.1)),
    ],
)
def test_a_rule_is_read(text, rule):
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("secure_utility > 0.8", "a rule is a rate"),
        ("charm >= 0.8", "no rate 'charm'"),
        ("exposed >= 1.2", "not between 0 and 1"),
        ("exposed +- 0.6", "not between 0 and 0.5"),
        ("exposed +- 0", "not between 0 and 0.5"),
        ("exposed >= 1e", "not a number"),
        ("exposed >= nan", "a rule is a rate"),
        ("", "a rule is a rate"),
    ],
)
def test_a_bad_rule_is_refused_with_its_reason(text, words):
    with pytest.raises(ValueError, match=words):
        parse_rule(text)


@pytest.mark.parametrize(
    ("text", "interval", "verdict"),
    [
        ("exposed >= 0.8", (0.8, 1.0), HOLDS),
        ("exposed >= 0.8", (0.79, 1.0), CONTINUE),
        ("exposed >= 0.8", (0.1, 0.8), CONTINUE),
        ("exposed >= 0.8", (0.1, 0.79), FAILS),
        ("exposed <= 0.2", (0.0, 0.2), HOLDS),
        ("exposed <= 0.2", (0.1, 0.3), CONTINUE),
        ("exposed <= 0.2", (0.21, 0.3), FAILS),
        ("exposed +- 0.1", (0.5, 0.7), PRECISE),
        ("exposed +- 0.1", (0.5, 0.71), CONTINUE),
    ],
)
def test_a_rule_compares_interval_ends(text, interval, verdict):
    low, high = interval
    assert evaluate(parse_rule(text), Interval(low, high)) == verdict


def test_looks_are_taken_after_whole_trials_until_one_stops(table_of):
    table = table_of(a="R" * 30, b="R" * 30)
    taken = looks(parse_rule("secure_utility >= 0.8"), table)
    assert [one.trial for one in taken] == list(range(1, 13))
    assert [one.verdict for one in taken] == [CONTINUE] * 11 + [HOLDS]
    assert taken[-1].n == taken[-1].count == 24
    assert taken[-1] == look(parse_rule("secure_utility >= 0.8"), table, 12)
    assert taken[-1].interval == always_valid(24, 0, 24)


def test_unresolved_cases_hold_a_rule_back(table_of):
    rule = parse_rule("secure_utility >= 0.5")
    taken = looks(rule, table_of(a="RURURURURU"))
    assert {one.verdict for one in taken} == {CONTINUE}
    assert taken[-1].unresolved == 5


def test_a_look_needs_whole_trials(table_of):
    rule = parse_rule("secure_utility >= 0.5")
    with pytest.raises(ValueError, match="trials 1 to 3"):
        look(rule, table_of(a="RRR", b="RR"), 3)
    assert look(rule, table_of(a="RRR", b="RR"), 2).n == 4
    assert looks(rule, table_of(a="")) == ()


def test_impossible_numbers_are_refused():
    for bad in ((2, 0, 1, 0.95), (0, 0, 1, 1.0), (0, 0, 1, 0.95, 0.0)):
        with pytest.raises(ValueError):
            always_valid(*bad)
