"""Two reports on the same pairs."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impact_twin.statistics.compare import (
    BETTER,
    COMPARED_RATES,
    NO_DIFFERENCE_SHOWN,
    WORSE,
    GroupCount,
    compare,
    compare_counts,
)
from impact_twin.statistics.conditional import conditional_test
from impact_twin.statistics.difference import TwoGroups


def columns(tables, unresolved=None):
    """Columns from [k_A, n_A, k_B, n_B] rows; the reference's difference is A - B, so swap."""
    unresolved = unresolved or [(0, 0)] * len(tables)
    return [
        (f"p{place}", GroupCount(k_b, u_b, n_b), GroupCount(k_a, u_a, n_a))
        for place, ((k_a, n_a, k_b, n_b), (u_a, u_b)) in enumerate(
            zip(tables, unresolved, strict=True)
        )
    ]


def test_reference_values(reference, agree):
    section = reference["comparison"]
    for line in section["datasets"].values():
        found = compare_counts(columns(line["tables"]), "secure_utility", 0.95)
        assert agree(
            [found.difference, *found.interval], line["stratified_MN_equal"], section["tolerance"]
        )
        assert found.p_value == pytest.approx(line["exact_cmh"]["p_two_pointprob"], rel=1e-8)
        for pair, wanted, adjusted in zip(
            found.pairs, line["per_pair"], line["holm_fisher"], strict=True
        ):
            assert agree(pair.newcombe, wanted["newcombe"], 1e-8)
            assert agree([pair.p_value, pair.p_holm], [wanted["fisher"], adjusted], 1e-8)


def test_verdicts_of_the_reference_datasets(reference):
    sets = reference["comparison"]["datasets"]
    words = {
        name: compare_counts(columns(line["tables"]), "secure_utility", 0.95)
        for name, line in sets.items()
    }
    assert words["D1_clear"].verdict == BETTER
    assert words["D3_no_difference"].verdict == NO_DIFFERENCE_SHOWN
    crossed = words["D4_qualitative_interaction"]
    assert crossed.verdict == NO_DIFFERENCE_SHOWN
    assert [pair.verdict for pair in crossed.pairs] == [
        BETTER,
        WORSE,
        NO_DIFFERENCE_SHOWN,
        BETTER,
        WORSE,
    ]


def test_fewer_attacks_are_better_and_less_utility_is_worse():
    tables = [[1, 10, 9, 10]] * 5
    assert compare_counts(columns(tables), "attack_success", 0.95).verdict == BETTER
    assert compare_counts(columns(tables), "benign_utility", 0.95).verdict == WORSE


def test_unresolved_cases_take_their_least_favourable_side(reference):
    line = reference["unresolved"]["seed002"]
    found = compare_counts(
        [("inbox", GroupCount(1, 0, 40), GroupCount(0, 8, 40))], "attack_success", 0.95
    )
    assert found.bounds == pytest.approx(line["identified_diff_detector_minus_filter"], abs=1e-9)
    assert found.pairs[0].newcombe == pytest.approx(line["identified_plus_newcombe"], abs=1e-9)
    assert found.p_value == 1.0
    assert found.verdict == NO_DIFFERENCE_SHOWN
    sure = compare_counts(
        [("inbox", GroupCount(1, 0, 40), GroupCount(8, 0, 40))], "attack_success", 0.95
    )
    wanted = line["full"]["fisher_p"]
    assert sure.p_value == pytest.approx(wanted, abs=1e-9)
    assert sure.verdict == WORSE


@st.composite
def reports(draw):
    n = draw(st.integers(1, 6))
    groups = st.integers(0, n).flatmap(
        lambda k: st.integers(0, n - k).map(lambda u: GroupCount(k, u, n))
    )
    size = draw(st.integers(1, 3))
    return [(f"p{place}", draw(groups), draw(groups)) for place in range(size)]


@settings(max_examples=60)
@given(reports())
def test_every_completion_lies_inside_what_is_shown(rows):
    found = compare_counts(rows, "secure_utility", 0.9)
    assert found.interval.lo <= found.bounds.lo + 1e-9
    assert found.bounds.hi <= found.interval.hi + 1e-9
    assert found.bounds.lo - 1e-12 <= found.difference <= found.bounds.hi + 1e-12
    for share in (0, 1):
        complete = [
            (
                name,
                GroupCount(a.count + share * a.unresolved, 0, a.n),
                GroupCount(b.count + (1 - share) * b.unresolved, 0, b.n),
            )
            for name, a, b in rows
        ]
        inner = compare_counts(complete, "secure_utility", 0.9)
        assert found.interval.lo <= inner.interval.lo + 1e-9
        assert inner.interval.hi <= found.interval.hi + 1e-9
        assert inner.p_value <= found.p_value + 1e-9


@settings(max_examples=60)
@given(reports())
def test_swapping_the_reports_turns_the_verdict(rows):
    turn = {BETTER: WORSE, WORSE: BETTER, NO_DIFFERENCE_SHOWN: NO_DIFFERENCE_SHOWN}
    one = compare_counts(rows, "secure_utility", 0.9)
    other = compare_counts([(name, b, a) for name, a, b in rows], "secure_utility", 0.9)
    assert other.verdict == turn[one.verdict]
    assert other.difference == pytest.approx(-one.difference, abs=1e-12)
    assert compare_counts(rows, "attack_success", 0.9).verdict == turn[one.verdict]


def test_a_verdict_word_keeps_its_error_rate():
    n = 6
    for p in (0.2, 0.5, 0.9):
        chance = [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        wrong = sum(
            chance[a] * chance[b]
            for a, b in product(range(n + 1), repeat=2)
            if compare_counts(
                [("p", GroupCount(a, 0, n), GroupCount(b, 0, n))], "secure_utility", 0.95
            ).verdict
            != NO_DIFFERENCE_SHOWN
        )
        assert wrong <= 0.05


def test_whole_tables_are_compared_pair_by_name(table_of):
    a = table_of(x="RRRRRRRR", y="CCCCCCCC")
    b = table_of(y="RRRRRRRR", x="RRRRRRRR")
    found = compare(a, b)
    assert [line.rate for line in found] == list(COMPARED_RATES)
    secure, attack, benign = found
    assert (secure.a.count, secure.b.count) == (8, 16)
    assert secure.difference == 0.5
    assert [pair.difference for pair in secure.pairs] == [0.0, 1.0]
    assert (secure.verdict, attack.verdict) == (BETTER, BETTER)
    assert benign.verdict == NO_DIFFERENCE_SHOWN
    wanted = conditional_test([TwoGroups(8, 8, 8, 8), TwoGroups(8, 8, 0, 8)]).p_value
    assert secure.p_value == pytest.approx(wanted)


def test_a_pair_without_trials_in_one_report_is_named_but_not_compared(table_of):
    secure = compare(table_of(x="RRRR", y=""), table_of(x="RRRR", y="CC"))[0]
    assert secure.pairs[1].difference is None
    assert secure.pairs[1].verdict == NO_DIFFERENCE_SHOWN
    nothing = compare(table_of(x=""), table_of(x=""))[0]
    assert (nothing.difference, nothing.interval, nothing.p_value) == (None, None, None)


def test_other_pairs_are_refused(table_of):
    with pytest.raises(ValueError, match=r"different pairs: \['y'\]"):
        compare(table_of(x="R", y="R"), table_of(x="R"))


def test_the_order_of_trials_does_not_matter(random_table):
    a, b = random_table(1), random_table(2)
    random = np.random.default_rng(0)
    shuffled = a.select(random.permutation(len(a)))
    assert compare(shuffled, b) == compare(a, b)
