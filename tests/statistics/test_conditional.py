"""Fisher's test, its stratified form, and Holm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact, hypergeom

from impact_twin.statistics.conditional import conditional_test, fisher, holm
from impact_twin.statistics.difference import TwoGroups


@st.composite
def tables(draw):
    n_a, n_b = draw(st.integers(0, 20)), draw(st.integers(1, 20))
    return TwoGroups(draw(st.integers(0, n_a)), n_a, draw(st.integers(0, n_b)), n_b)


def test_reference_values(reference, agree):
    section = reference["comparison"]
    tolerance = section["tolerance"]
    for line in section["datasets"].values():
        rows = [TwoGroups(*numbers) for numbers in line["tables"]]
        found, wanted = conditional_test(rows), line["exact_cmh"]
        assert found.events == wanted["S"]
        assert agree(
            [found.mean, found.p_value, found.p_fewer, found.p_more],
            [wanted["mean"], wanted["p_two_pointprob"], wanted["p_le"], wanted["p_ge"]],
            tolerance,
        )
        assert found.p_value == pytest.approx(wanted["p_two_pointprob"], rel=1e-9)
        singles = [fisher(row) for row in rows]
        assert agree(singles, [pair["fisher"] for pair in line["per_pair"]], tolerance)
        assert agree(holm(singles), line["holm_fisher"], tolerance)
        pooled = TwoGroups(*line["pooled"]["a"], *line["pooled"]["b"])
        assert fisher(pooled) == pytest.approx(line["pooled"]["fisher"], abs=tolerance)


def test_holm_on_other_reference_values(reference, agree):
    for line in reference["comparison"]["datasets"].values():
        raw = [pair["boschloo"] for pair in line["per_pair"]]
        assert agree(holm(raw), line["holm_boschloo"], 1e-8)


def test_fewest_events_that_differ_from_none(reference):
    for trials, line in reference["comparison"]["smallest_x_vs_zero"].items():
        n = int(trials)
        for level in (0.05, 0.01):
            least = next(x for x in range(n + 1) if fisher(TwoGroups(x, n, 0, n)) <= level)
            assert least == line[f"fisher_{level}"]


def test_the_released_records(reference):
    for part in ("full", "filtered", "strict_lower"):
        line = reference["unresolved"]["seed002"][part]
        row = TwoGroups(*line["detector"], *line["tool_filter"])
        assert fisher(row) == pytest.approx(line["fisher_p"], abs=1e-9)
    line = reference["unresolved"]["seed002"]["exclusion_not_at_random"]
    assert fisher(TwoGroups(8, 11, 0, 29)) == pytest.approx(line["fisher_p"], rel=1e-9)


def test_kept_values(kept):
    line = kept["difference"][0]
    found = conditional_test([TwoGroups(*numbers) for numbers in line["tables"]])
    assert found.p_value == pytest.approx(line["exact_cmh_p"], rel=1e-9)


@given(tables())
def test_scipy_agrees_on_one_table(row):
    wanted = fisher_exact([[row.k_a, row.n_a - row.k_a], [row.k_b, row.n_b - row.k_b]])[1]
    assert fisher(row) == pytest.approx(wanted, abs=1e-10)


@given(tables())
def test_scipy_agrees_on_the_tails(row):
    law = hypergeom(row.n_a + row.n_b, row.k_a + row.k_b, row.n_a)
    found = conditional_test([row])
    assert found.p_fewer == pytest.approx(law.cdf(row.k_a), abs=1e-10)
    assert found.p_more == pytest.approx(law.sf(row.k_a - 1), abs=1e-10)
    share = row.n_a / (row.n_a + row.n_b)
    assert found.mean == pytest.approx((row.k_a + row.k_b) * share, abs=1e-9)


@given(st.lists(tables(), max_size=5), st.randoms())
def test_order_of_strata_and_swapping_groups_change_nothing(rows, random):
    found = conditional_test(rows)
    shuffled = conditional_test(random.sample(rows, len(rows)))
    swapped = conditional_test([TwoGroups(r.k_b, r.n_b, r.k_a, r.n_a) for r in rows])
    assert shuffled.p_value == pytest.approx(found.p_value, abs=1e-9)
    assert swapped.p_value == pytest.approx(found.p_value, abs=1e-9)
    assert swapped.p_fewer == pytest.approx(found.p_more, abs=1e-9)


def test_a_million_trials_stay_finite():
    found = conditional_test([TwoGroups(100_000, 200_000, 100_500, 200_000)] * 5)
    assert found.mean == pytest.approx(501_250)
    assert found.p_value == pytest.approx(0.000409, abs=2e-6)
    assert conditional_test([TwoGroups(100_000, 100_000, 0, 100_000)]).p_value < 1e-30


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    assert all(before <= after <= 1 for before, after in zip(p_values, adjusted, strict=True))
    ranked = sorted(range(len(p_values)), key=lambda place: p_values[place])
    assert [adjusted[place] for place in ranked] == sorted(adjusted)


def test_no_stratum_or_an_empty_group_says_nothing():
    assert conditional_test([]).p_value == 1.0
    assert conditional_test([TwoGroups(0, 0, 3, 4)]).p_value == 1.0
