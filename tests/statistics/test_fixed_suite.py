"""The fixed-suite interval."""

from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.statistics.fixed_suite import effective_n, fixed_suite
from impact_twin.statistics.intervals import wilson


@st.composite
def suites(draw):
    n = draw(st.integers(1, 60))
    size = draw(st.integers(1, 8))
    counts = draw(st.lists(st.integers(0, n), min_size=size, max_size=size))
    return counts, n


def test_reference_values(reference, agree):
    section = reference["fixed_suite_aggregate"]
    for line in section["cases"]:
        wanted, n = line["fixed_suite_wilson"], line["K"]
        found = fixed_suite(line["counts"], [0] * 5, [n] * 5)
        assert agree(found, wanted["ci"], section["tolerance"]), line["counts"]
        assert effective_n(line["counts"], n) == pytest.approx(wanted["n_eff"], rel=1e-12)
        assert agree(wilson(line["S"], line["N"]), line["pooled_wilson"], 1e-12)


def test_kept_values(kept, agree):
    for line in kept["fixed_suite"]:
        found = fixed_suite(line["counts"], [0] * 5, [line["K"]] * 5)
        assert agree(found, line["ci"], 1e-10)


@given(suites())
def test_it_contains_the_estimate_and_is_no_wider_than_the_pooled_interval(suite):
    counts, n = suite
    found = fixed_suite(counts, [0] * len(counts), [n] * len(counts))
    total = n * len(counts)
    pooled = wilson(sum(counts), total)
    assert found.lo <= sum(counts) / total + 1e-12
    assert found.hi >= sum(counts) / total - 1e-12
    assert pooled.lo - 1e-12 <= found.lo
    assert found.hi <= pooled.hi + 1e-12


@given(suites())
def test_symmetric_under_k_to_n_minus_k(suite):
    counts, n = suite
    zeros, trials = [0] * len(counts), [n] * len(counts)
    one = fixed_suite(counts, zeros, trials)
    other = fixed_suite([n - k for k in counts], zeros, trials)
    assert one.lo == pytest.approx(1 - other.hi, abs=1e-12)


@given(suites(), st.randoms())
def test_the_order_of_the_pairs_does_not_matter(suite, random):
    counts, n = suite
    shuffled = random.sample(counts, len(counts))
    zeros, trials = [0] * len(counts), [n] * len(counts)
    one, other = fixed_suite(counts, zeros, trials), fixed_suite(shuffled, zeros, trials)
    assert one == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_one_more_event_never_lowers_an_end(n):
    zeros, trials = [0] * 5, [n] * 5
    for counts in combinations_with_replacement(range(n + 1), 5):
        now = fixed_suite(counts, zeros, trials)
        for place in range(5):
            if counts[place] < n:
                more = list(counts)
                more[place] += 1
                after = fixed_suite(more, zeros, trials)
                assert after.lo >= now.lo - 1e-12
                assert after.hi >= now.hi - 1e-12


def test_each_end_has_its_own_effective_n():
    found = fixed_suite([0, 0, 5, 5, 5], [0, 5, 0, 0, 0], [5] * 5)
    assert found.lo == fixed_suite([0, 0, 5, 5, 5], [0] * 5, [5] * 5).lo
    assert found.hi == fixed_suite([0, 5, 5, 5, 5], [0] * 5, [5] * 5).hi


def test_it_is_withheld_with_unequal_n_or_nothing_planned():
    assert fixed_suite([1, 1], [0, 0], [5, 6]) is None
    assert fixed_suite([0, 0], [0, 0], [0, 0]) is None
    assert fixed_suite([], [], []) is None


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="impossible counts"):
        fixed_suite([3], [3], [5])
