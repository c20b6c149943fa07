"""attack@k and pass^k."""

from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.statistics.intervals import wilson
from impact_twin.statistics.passk import (
    all_of_k,
    all_of_k_image,
    at_least_one,
    at_least_one_image,
    attack_at_k,
    pass_hat_k,
)


@st.composite
def numbers(draw):
    n = draw(st.integers(1, 12))
    return draw(st.integers(0, n)), n, draw(st.integers(1, n))


def test_reference_values(reference, agree):
    section = reference["pass_k"]
    tolerance = section["tolerance"]
    for line in section["cases"]:
        c, n, k = line["c"], line["n"], line["k"]
        assert at_least_one(c, n, k) == pytest.approx(line["at_least_one"], abs=tolerance)
        assert all_of_k(c, n, k) == pytest.approx(line["all_k"], abs=tolerance)
        interval = wilson(c, n)
        assert agree(at_least_one_image(interval, k), line["at_least_one_wilson"], tolerance)
        assert agree(all_of_k_image(interval, k), line["all_k_wilson"], tolerance)


def test_it_is_unbiased(reference):
    for line in reference["pass_k"]["unbiased_check"]:
        n, k, p = line["n"], line["k"], line["p"]
        weights = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        one = sum(w * at_least_one(c, n, k) for c, w in enumerate(weights))
        every = sum(w * all_of_k(c, n, k) for c, w in enumerate(weights))
        assert one == pytest.approx(line["true"], abs=1e-12)
        assert one == pytest.approx(line["E_estimator"], abs=1e-12)
        assert every == pytest.approx(line["true_all"], rel=1e-9)


def test_the_suite_takes_the_mean_over_its_pairs(reference):
    for k, line in reference["pass_k"]["suite"].items():
        found = [at_least_one(c, 10, int(k)) for c in (1, 5, 0, 10, 8)]
        assert found == pytest.approx(line["per_pair"], abs=1e-12)
        assert sum(found) / 5 == pytest.approx(line["mean"], abs=1e-12)


@given(numbers())
def test_it_is_the_share_of_subsets(given_numbers):
    c, n, k = given_numbers
    chosen = list(combinations([True] * c + [False] * (n - c), k))
    assert at_least_one(c, n, k) == pytest.approx(sum(map(any, chosen)) / len(chosen), abs=1e-12)
    assert all_of_k(c, n, k) == pytest.approx(sum(map(all, chosen)) / len(chosen), abs=1e-12)


@given(numbers())
def test_one_is_the_mirror_of_the_other(given_numbers):
    c, n, k = given_numbers
    assert at_least_one(c, n, k) == pytest.approx(1 - all_of_k(n - c, n, k), abs=1e-12)


def test_unresolved_runs_give_bounds():
    (first, second, *rest) = attack_at_k(0, 1, 4, 0.95)
    assert [first.k, second.k, *(line.k for line in rest)] == [1, 2, 3]
    assert first.bounds == (0.0, 0.25)
    assert second.bounds == (0.0, 0.5)
    assert pass_hat_k(3, 1, 4, 0.95)[2].bounds == (0.25, 1.0)


def test_the_intervals_contain_the_bounds_and_can_be_withheld():
    for line in (*attack_at_k(3, 2, 10, 0.95), *pass_hat_k(3, 2, 10, 0.95)):
        assert line.interval.lo <= line.interval.hi
    first = attack_at_k(3, 2, 10, 0.95)[0]
    assert first.interval.lo <= first.bounds.lo <= first.bounds.hi <= first.interval.hi
    assert all(line.interval is None for line in attack_at_k(3, 2, 10, 0.95, withheld=True))
    assert all(line.interval is None for line in pass_hat_k(3, 2, 10, 0.95, withheld=True))


def test_nothing_planned_has_no_k():
    assert attack_at_k(0, 0, 0, 0.95) == ()


def test_impossible_numbers_are_refused():
    for bad in ((3, 2, 1), (-1, 2, 1), (1, 2, 0), (1, 2, 3)):
        with pytest.raises(ValueError, match="impossible"):
            at_least_one(*bad)
