"""The cluster bootstrap, exact and sampled."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.statistics.bootstrap import (
    EXACT,
    SAMPLED,
    as_fraction,
    cluster_bootstrap,
    stratified_bootstrap,
)
from impact_twin.statistics.lattice import TooLargeError, resampled_mean, weighted_sum

thirds = st.integers(0, 3).map(lambda k: Fraction(k, 3))
suites = st.lists(thirds, min_size=1, max_size=5)


def expand(counts):
    return [Fraction(k, 3) for k, times in enumerate(counts) for _ in range(times)]


@pytest.mark.parametrize("collapse", ["mean", "majority", "all_repeats_robust"])
def test_the_enumerated_example(reference, agree, collapse):
    line = reference["cluster_bootstrap"]["six_pairs"][collapse]
    values = [Fraction(text) for text in line["collapsed"]]
    lattice = resampled_mean(values)
    found = [[str(point), float(point), count] for point, count in lattice.support()]
    assert found == line["distribution"]
    assert lattice.total == line["total"] == 6**6
    result = cluster_bootstrap(values)
    assert result.method == EXACT
    assert agree(result.interval, line["percentile_type1"], 1e-12)
    assert agree(result.interval, line["percentile_numpy_linear"], 1e-12)
    scipy_said = line["scipy_bootstrap_99999_seed12345"]["percentile"]
    assert agree(result.interval, scipy_said, 1e-12)
    assert result.standard_error == pytest.approx(line["se_boot"], abs=1e-12)
    assert result.estimate == pytest.approx(line["estimate"], abs=1e-12)


def test_two_suites(reference, agree):
    line = reference["cluster_bootstrap"]["two_suite"]
    parts = [[Fraction(text) for text in line[name]] for name in "AB"]
    found = stratified_bootstrap(parts, line["weights"])
    assert found.method == EXACT
    assert found.estimate == pytest.approx(line["estimate"], abs=1e-12)
    assert agree(found.interval, line["stratified_bootstrap_percentile"], 1e-12)
    assert agree(cluster_bootstrap(parts[0]).interval, line["suite_A_ci"], 1e-12)
    assert agree(cluster_bootstrap(parts[1]).interval, line["suite_B_ci"], 1e-12)
    whole = weighted_sum([resampled_mean(p) for p in parts], [Fraction(2, 5), Fraction(3, 5)])
    assert len(whole.support()) == line["n_support"]


def test_a_board_of_150_pairs(reference, agree):
    line = reference["cluster_bootstrap"]["board_like"]
    work, bank = expand(line["workspace_counts_0_1_2_3"]), expand(line["banking_counts_0_1_2_3"])
    assert agree(cluster_bootstrap(work).interval, line["ci_workspace"], 1e-12)
    assert agree(cluster_bootstrap(bank).interval, line["ci_banking"], 1e-12)
    found = stratified_bootstrap([work, bank], [len(work), len(bank)])
    assert found.method == EXACT
    assert agree(found.interval, line["ci_combined"], 1e-12)
    assert found.estimate == pytest.approx(line["R"], abs=1e-12)
    assert found.clusters == (60, 90)


def test_coverage_of_the_percentile_interval(reference):
    cells = reference["cluster_bootstrap"]["pair_level_coverage"]
    for line in (cell for cell in cells if cell["n"] <= 35):
        n, p = line["n"], line["p"]
        chances = [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        intervals = [cluster_bootstrap([1] * k + [0] * (n - k)).interval for k in range(n + 1)]
        pairs = list(zip(chances, intervals, strict=True))
        covered = sum(chance for chance, interval in pairs if interval.contains(p))
        assert covered == pytest.approx(line["percentile_bootstrap"], abs=1e-9)
        robust = sum(chance for chance, interval in pairs if interval.lo >= 0.9)
        assert robust == pytest.approx(line["P_boot_confirmed_robust"], abs=1e-9)


def test_least_successes_that_confirm_a_rate_of_90_percent(reference):
    for n, line in reference["cluster_bootstrap"]["min_successes_for_confirmed"].items():

        def low(k, n=int(n)):
            return cluster_bootstrap([1] * k + [0] * (n - k)).interval.lo

        assert low(line["bootstrap"]) >= 0.9 > low(line["bootstrap"] - 1)


def test_kept_values(kept, agree):
    line = kept["bootstrap"]
    found = cluster_bootstrap([Fraction(text) for text in line["values"]])
    assert agree(found.interval, line["interval"], 1e-12)


@given(suites)
def test_it_is_what_enumerating_every_resample_gives(values):
    n = len(values)
    means = sorted(sum(draw, Fraction(0)) / n for draw in product(values, repeat=n))
    lattice = resampled_mean(values)
    expanded = [point for point, count in lattice.support() for _ in range(count)]
    assert expanded == means
    assert lattice.mean() == sum(values, Fraction(0)) / n


@given(suites, suites, st.integers(1, 5), st.integers(1, 5))
def test_a_weighted_sum_is_what_enumerating_both_gives(one, other, weight_a, weight_b):
    shares = [Fraction(weight_a, weight_a + weight_b), Fraction(weight_b, weight_a + weight_b)]
    parts = [resampled_mean(one), resampled_mean(other)]
    wanted = {}
    for (a, ways_a), (b, ways_b) in product(parts[0].support(), parts[1].support()):
        point = shares[0] * a + shares[1] * b
        wanted[point] = wanted.get(point, 0) + ways_a * ways_b
    assert weighted_sum(parts, shares).support() == sorted(wanted.items())


@given(suites, st.randoms())
def test_contains_the_estimate_and_ignores_the_order(values, random):
    found = cluster_bootstrap(values)
    assert found.interval.lo <= found.estimate <= found.interval.hi
    assert cluster_bootstrap(random.sample(values, len(values))) == found


@given(suites)
def test_mirrored_values_mirror_the_distribution(values):
    one = resampled_mean(values).support()
    other = resampled_mean([1 - value for value in values]).support()
    assert [(1 - point, count) for point, count in reversed(other)] == one


def test_floats_that_are_fractions_stay_exact():
    assert as_fraction(2 / 3) == Fraction(2, 3)
    assert as_fraction(0.1 + 0.2) == Fraction(3, 10)
    assert as_fraction(2**0.5) is None
    exact = cluster_bootstrap([0, Fraction(1, 3), Fraction(2, 3), 1])
    assert cluster_bootstrap([0.0, 1 / 3, 2 / 3, 1.0]) == exact


def test_other_values_are_sampled_with_a_stated_seed_and_count():
    random = np.random.default_rng(0)
    values = random.random(40).tolist()
    found = cluster_bootstrap(values, resamples=4000, seed=3)
    assert (found.method, found.resamples, found.seed) == (SAMPLED, 4000, 3)
    assert found == cluster_bootstrap(values, resamples=4000, seed=3)
    spread = 1.96 * found.standard_error
    assert found.interval.lo == pytest.approx(found.estimate - spread, abs=0.02)
    assert found.interval.hi == pytest.approx(found.estimate + spread, abs=0.02)


def test_sampling_agrees_with_the_exact_answer():
    values = expand([5, 2, 1, 22])
    exact = cluster_bootstrap(values)
    shaken = [float(value) + 1e-9 * place for place, value in enumerate(values)]
    sampled = cluster_bootstrap(shaken, seed=1)
    assert sampled.method == SAMPLED
    assert sampled.interval == pytest.approx(exact.interval, abs=0.023)


def test_a_lattice_too_fine_is_sampled():
    values = [Fraction(1, 9973), Fraction(1, 9967), *[Fraction(k, 7) for k in range(8)]] * 30
    with pytest.raises(TooLargeError):
        resampled_mean(values)
    assert cluster_bootstrap(values, resamples=200).method == SAMPLED


@pytest.mark.parametrize(
    ("given_suites", "weights", "words"),
    [
        ([], [], "0 suites"),
        ([[1]], [1, 2], "1 suites with 2 weights"),
        ([[1], []], [1, 1], "no clusters"),
        ([[1, float("nan")]], [1], "not finite"),
        ([[1]], [0], "not a positive"),
    ],
)
def test_bad_input_is_refused(given_suites, weights, words):
    with pytest.raises(ValueError, match=words):
        stratified_bootstrap(given_suites, weights)
