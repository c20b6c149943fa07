"""Labels, and what a stable pair can't exclude."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from impact_twin.statistics.stability import (
    STABLE,
    UNDETERMINED,
    VARIABLE,
    other_outcome_bound,
    posthoc_bound,
    stability_bound,
    stability_label,
)
from impact_twin.statistics.table import OUTCOME_CLASSES, UNRESOLVED


def counts(**named):
    return [named.get(name, 0) for name in OUTCOME_CLASSES]


@pytest.mark.parametrize(
    ("tally", "label"),
    [
        (counts(resisted=5), STABLE),
        (counts(compromised=10), STABLE),
        (counts(resisted=4), UNDETERMINED),
        (counts(resisted=9, unresolved=1), UNDETERMINED),
        (counts(unresolved=10), UNDETERMINED),
        (counts(), UNDETERMINED),
        (counts(resisted=1, compromised=1), VARIABLE),
        (counts(resisted=1, compromised=1, unresolved=98), VARIABLE),
        (counts(swayed=1, derailed=99), VARIABLE),
    ],
)
def test_the_label(tally, label):
    assert stability_label(tally) == label


@given(st.lists(st.integers(0, 6), min_size=9, max_size=9))
def test_a_label_says_what_its_definition_says(tally):
    resolved = [n for code, n in enumerate(tally) if n and code != UNRESOLVED]
    label = stability_label(tally)
    assert (label == VARIABLE) == (len(resolved) > 1)
    whole = len(resolved) == 1 and resolved[0] == sum(tally)
    assert (label == STABLE) == (whole and sum(tally) >= 5)


def test_reference_values(reference):
    section = reference["stability"]
    for line in section["upper_bounds"]:
        n, tolerance = line["n"], section["tolerance"]
        wanted = line["exact_one_sided95"]
        assert other_outcome_bound(n) == pytest.approx(wanted, abs=tolerance)
        wanted = line["five_pairs_bonferroni_exact"]
        assert other_outcome_bound(n, pairs=5) == pytest.approx(wanted, abs=tolerance)
        assert posthoc_bound(n) == pytest.approx(line["posthoc_mode_exact95"], abs=tolerance)


def test_kept_values(kept):
    for line in kept["stability"]:
        bound = stability_bound(line["n"], 0.95, 5)
        assert bound.per_pair == pytest.approx(line["per_pair"], abs=1e-9)
        assert bound.joint == pytest.approx(line["joint"], abs=1e-9)


@given(st.integers(1, 300), st.floats(0.5, 0.999))
def test_it_is_the_one_sided_clopper_pearson_limit(n, confidence):
    wanted = binomtest(0, n, alternative="less").proportion_ci(confidence, method="exact").high
    assert other_outcome_bound(n, confidence) == pytest.approx(wanted, abs=1e-12)


@given(st.integers(2, 300))
def test_naming_the_class_afterwards_never_excludes_more(n):
    assert posthoc_bound(n) >= other_outcome_bound(n) - 1e-12


def test_impossible_numbers_are_refused():
    for call in (
        lambda: other_outcome_bound(0),
        lambda: other_outcome_bound(5, pairs=0),
        lambda: other_outcome_bound(5, confidence=1.0),
        lambda: posthoc_bound(1),
    ):
        with pytest.raises(ValueError):
            call()
