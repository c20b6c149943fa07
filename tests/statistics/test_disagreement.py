"""Disagreement between two runs of a pair."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.statistics.disagreement import code_counts, disagreement, disagreement_bounds


def test_reference_values(reference):
    section = reference["disagreement"]
    for line in section["cases"]:
        counts = list(Counter(line["sequence"]).values())
        found = disagreement(counts)
        assert found == pytest.approx(line["pairwise_disagreement"], abs=section["tolerance"])


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=12))
def test_it_is_the_share_of_pairs_of_runs_that_differ(results):
    pairs = list(combinations(results, 2))
    wanted = sum(a != b for a, b in pairs) / len(pairs)
    assert disagreement(list(Counter(results).values())) == pytest.approx(wanted, abs=1e-15)


def test_it_is_unbiased(reference):
    line = reference["disagreement"]["unbiased_check"]
    expected = 0.0
    for results in product(range(3), repeat=line["n"]):
        weight = np.prod([line["p"][result] for result in results])
        expected += weight * disagreement(list(Counter(results).values()))
    assert expected == pytest.approx(line["true"], abs=1e-12)
    assert expected == pytest.approx(line["E_hat"], abs=1e-12)


def test_one_run_says_nothing():
    assert disagreement([1]) is None
    assert disagreement([]) is None
    assert disagreement_bounds([1, 0], 0) is None


@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.integers(0, 4))
def test_the_bounds_are_what_trying_every_completion_gives(counts, unresolved):
    tried = [
        disagreement([n + completion.count(place) for place, n in enumerate(counts)])
        for completion in product(range(len(counts)), repeat=unresolved)
    ]
    found = disagreement_bounds(counts, unresolved)
    if tried[0] is None:
        assert found is None
    else:
        assert found == pytest.approx((min(tried), max(tried)), abs=1e-15)


def test_bounds_without_a_possible_result_are_refused():
    with pytest.raises(ValueError, match="possible result"):
        disagreement_bounds([], 3)


@pytest.mark.parametrize("spread", [1, 10**6])
def test_codes_are_counted_per_pair_whether_dense_or_sparse(spread):
    pair = np.array([0, 0, 0, 2, 2, 2])
    codes = np.array([1, 1, 0, -1, 3, 2]) * spread
    codes[3] = -1
    mask = np.array([True, True, True, True, True, False])
    found = [counts.tolist() for counts in code_counts(pair, codes, 3, mask)]
    assert found == [[1, 2], [], [1]]


def test_traces_disagree_at_least_as_often_as_outcomes_that_follow_from_them():
    random = np.random.default_rng(5)
    traces = random.integers(0, 8, 30)
    outcomes = traces % 3
    by_trace = disagreement(np.bincount(traces).tolist())
    assert by_trace >= disagreement(np.bincount(outcomes).tolist())
