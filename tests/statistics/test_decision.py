"""Decision change and its swap test."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.statistics import decision
from impact_twin.statistics.decision import EXACT, MONTE_CARLO, decision_changes
from impact_twin.statistics.table import CaseObservation, Observation, ObservationTable

letters = st.sampled_from(["a", "b", "c", None])
trials = st.lists(st.tuples(letters, letters), min_size=2, max_size=7)


def table(*pairs, resolved=True):
    rows = []
    for place, decisions in enumerate(pairs):
        for trial, (clean, poisoned) in enumerate(decisions, 1):
            cases = [CaseObservation(resolved, decision=d) for d in (clean, poisoned)]
            rows.append(Observation(f"p{place}", trial, "resisted", *cases))
    return ObservationTable.from_rows(rows, [f"p{place}" for place in range(len(pairs))])


def by_hand(decisions):
    """(cross, clean-clean, poisoned-poisoned, change) from the definition."""
    numbers = range(len(decisions))
    cross = np.mean(
        [decisions[i][0] != decisions[j][1] for i in numbers for j in numbers if i != j]
    )
    own = [
        np.mean([decisions[i][twin] != decisions[j][twin] for i, j in combinations(numbers, 2)])
        for twin in (0, 1)
    ]
    return cross, *own, cross - np.mean(own)


def by_swapping(pairs):
    """The p-value by going through every swap of every pair-trial."""
    seen = np.mean([by_hand(decisions)[3] for decisions in pairs])
    every = [
        [
            by_hand([d[::-1] if s else d for d, s in zip(decisions, swaps, strict=True)])[3]
            for swaps in product((False, True), repeat=len(decisions))
        ]
        for decisions in pairs
    ]
    means = [np.mean(values) for values in product(*every)]
    return np.mean([mean >= seen - 1e-12 for mean in means])


@given(trials)
def test_one_pair_is_what_the_definition_gives(decisions):
    (found,) = decision_changes(table(decisions)).pairs
    parts = (found.cross, found.clean_clean, found.poisoned_poisoned, found.change)
    assert parts == pytest.approx(by_hand(decisions), abs=1e-12)
    assert found.method == EXACT
    assert found.p_value == pytest.approx(by_swapping([decisions]), abs=1e-9)


@given(
    st.lists(st.tuples(letters, letters), min_size=2, max_size=4),
    st.lists(st.tuples(letters, letters), min_size=2, max_size=3),
)
def test_the_suite_takes_the_mean_over_pairs_of_unequal_n(one, other):
    found = decision_changes(table(one, other)).suite
    assert found.change == pytest.approx((by_hand(one)[3] + by_hand(other)[3]) / 2, abs=1e-12)
    assert found.p_value == pytest.approx(by_swapping([one, other]), abs=1e-9)


@given(trials, st.randoms())
def test_swapping_all_twins_or_shuffling_trials_changes_nothing(decisions, random):
    found = decision_changes(table(decisions)).suite
    turned = decision_changes(table([d[::-1] for d in decisions])).suite
    shuffled = decision_changes(table(random.sample(decisions, len(decisions)))).suite
    assert turned.change == pytest.approx(found.change, abs=1e-12)
    assert turned.p_value == pytest.approx(found.p_value, abs=1e-12)
    assert shuffled == found


def test_a_poison_that_always_moves_the_decision_is_found():
    found = decision_changes(table([("a", "b")] * 10)).suite
    assert (found.cross, found.clean_clean, found.poisoned_poisoned) == (1.0, 0.0, 0.0)
    assert found.p_value == pytest.approx(2 / 2**10)


def test_an_agent_that_errs_by_itself_shows_no_change():
    random = np.random.default_rng(4)
    rejected, swayed = 0, 0
    for _ in range(300):
        decisions = [tuple("b" if random.random() < 0.2 else "a" for _ in "cp") for _ in range(10)]
        swayed += any(clean == "a" and poisoned == "b" for clean, poisoned in decisions)
        rejected += decision_changes(table(decisions)).suite.p_value <= 0.05
    assert swayed > 200
    assert rejected <= 25


def test_more_trials_than_can_be_enumerated_are_drawn_with_their_count(monkeypatch):
    random = np.random.default_rng(9)
    decisions = [tuple(random.choice(list("abc"), 2, p=[0.6, 0.3, 0.1])) for _ in range(12)]
    exact = decision_changes(table(decisions)).suite
    monkeypatch.setattr(decision, "_EXACT_SUPPORT", 1)
    drawn = decision_changes(table(decisions)).suite
    assert (drawn.method, drawn.draws) == (MONTE_CARLO, decision.DRAWS)
    assert drawn == decision_changes(table(decisions)).suite
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.015)


def test_too_little_resolved_says_nothing():
    assert decision_changes(table([("a", "b")])).suite is None
    assert decision_changes(table([("a", "b")] * 9, resolved=False)).pairs == (None,)
    mixed = decision_changes(table([("a", "b")], [("a", "a")] * 4))
    assert mixed.pairs[0] is None
    assert mixed.suite.n == 4


def test_pairs_are_corrected_together():
    found = decision_changes(table([("a", "b")] * 8, [("a", "a")] * 8, [("a", "b")] * 8))
    assert [pair.p_holm for pair in found.pairs] == pytest.approx([3 / 128, 1.0, 3 / 128])
