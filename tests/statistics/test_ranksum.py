"""The null distribution of a sum of positions."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from impact_twin.statistics import ranksum
from impact_twin.statistics.ranksum import EXACT, NORMAL, Stratum, position_sum_masses, two_sided_p


@st.composite
def strata(draw, top=9):
    n = draw(st.integers(1, top))
    return Stratum(draw(st.integers(0, n)), n)


def enumerated(stratum):
    sums = [sum(chosen) for chosen in combinations(range(1, stratum.n + 1), stratum.k)]
    return np.bincount(sums) / len(sums)


def test_reference_value(reference):
    section = reference["order_dependence"]
    line = section["stratified_trend"]
    rows = [Stratum(sum(row), len(row)) for row in line["matrix"]]
    total = sum(place for row in line["matrix"] for place, x in enumerate(row, 1) if x)
    assert total == line["T"]
    assert sum(row.mean for row in rows) == pytest.approx(line["null_mean"], abs=1e-9)
    p_value, method = two_sided_p(rows, total)
    assert method == EXACT
    assert p_value == pytest.approx(line["exact_two_sided_p"], abs=section["tolerance"])


def test_one_stratum_is_the_exact_mann_whitney_test(reference):
    for line in reference["order_dependence"]["runs"].values():
        places = [place for place, x in enumerate(line["sequence"], 1) if x == "1"]
        found = two_sided_p([Stratum(len(places), len(line["sequence"]))], sum(places))[0]
        assert found == pytest.approx(line["mannwhitney_position_p"], abs=1e-9)


def test_kept_value(kept):
    line = kept["trend"]
    assert two_sided_p([Stratum(*row) for row in line["strata"]], line["position_sum"])[
        0
    ] == pytest.approx(line["p_value"], abs=1e-9)


@given(st.lists(strata(), min_size=1, max_size=3))
def test_it_is_what_enumeration_gives(rows):
    wanted, lowest = np.ones(1), 0
    for row in rows:
        wanted = np.convolve(wanted, enumerated(row))
        lowest += row.k * (row.k + 1) // 2
    mean = sum(row.mean for row in rows)
    for total in range(lowest, len(wanted)):
        far = np.abs(np.arange(len(wanted)) - mean) >= abs(total - mean) - 1e-9
        found = two_sided_p(rows, total)[0]
        assert found == pytest.approx(min(wanted[far].sum(), 1.0), abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(100, 200), (30, 199), (250, 500)])
def test_long_strata_keep_their_precision(k, n):
    masses = position_sum_masses([Stratum(k, n)])
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert masses[0] == pytest.approx(1 / comb(n, k), abs=1e-16)
    assert masses == pytest.approx(masses[::-1], abs=1e-15)
    places = np.arange(len(masses))
    mean = masses @ places
    variance = masses @ (places - mean) ** 2
    assert variance == pytest.approx(Stratum(k, n).variance, rel=1e-9)


def test_scipy_agrees_on_a_long_stratum():
    random = np.random.default_rng(2)
    order = random.permutation(60) + 1
    events, others = order[:25], order[25:]
    wanted = mannwhitneyu(events, others, method="exact").pvalue
    assert two_sided_p([Stratum(25, 60)], int(events.sum()))[0] == pytest.approx(wanted, abs=1e-10)


def test_very_long_runs_fall_back_to_the_normal_and_say_so(monkeypatch):
    rows = [Stratum(60, 150)] * 5
    total = int(sum(row.mean for row in rows)) + 1500
    exact, method = two_sided_p(rows, total)
    assert method == EXACT
    monkeypatch.setattr(ranksum, "EXACT_STEPS", 0)
    rough, method = two_sided_p(rows, total)
    assert method == NORMAL
    assert rough == pytest.approx(exact, abs=1e-3)
    assert two_sided_p([Stratum(100_000, 200_000)] * 5, 50_000_250_000)[1] in (EXACT, NORMAL)


def test_nothing_to_permute_is_no_evidence():
    assert two_sided_p([], 0) == (1.0, EXACT)
    assert two_sided_p([Stratum(0, 9), Stratum(4, 4)], 10) == (1.0, EXACT)
