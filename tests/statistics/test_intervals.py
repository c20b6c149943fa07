"""Wilson's interval and the bounds with unresolved cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from impact_twin.statistics.intervals import (
    identification_bounds,
    two_sided_z,
    wilson,
    wilson_with_unresolved,
)

CONFIDENCE = st.floats(0.5, 0.999)


@st.composite
def counts(draw):
    n = draw(st.integers(1, 400))
    k = draw(st.integers(0, n))
    return k, draw(st.integers(0, n - k)), n


def test_the_normal_quantile_has_fifteen_digits(kept):
    assert abs(two_sided_z(0.95) - kept["z_95"]) < 1e-15


def test_reference_values(reference, agree):
    section = reference["wilson"]
    for line in section["cases"]:
        found = wilson(line["k"], line["n"], line["confidence"])
        assert agree(found, [line["lo"], line["hi"]], section["tolerance"]), line


def test_kept_values(kept, agree):
    for line in kept["wilson"]:
        assert agree(wilson(line["k"], line["n"]), [line["lo"], line["hi"]], 1e-12)


def test_reference_values_with_unresolved(reference, agree):
    section = reference["unresolved"]
    for line in section["cases"]:
        numbers = (line["c"], line["unresolved"], line["N"])
        found = wilson_with_unresolved(*numbers)
        assert agree(found, line["union_wilson"], section["tolerance"]), line
        bounds = identification_bounds(*numbers)
        assert agree(bounds, line["identified"], 1e-15)
        assert bounds.width == pytest.approx(line["width"], abs=1e-15)


def test_the_released_records_that_motivated_it(reference, agree):
    for part in ("full", "filtered", "strict_lower"):
        line = reference["unresolved"]["seed002"][part]
        assert agree(wilson(*line["detector"]), line["detector_wilson"], 1e-12)
        assert agree(wilson(*line["tool_filter"]), line["filter_wilson"], 1e-12)


@given(counts(), CONFIDENCE)
def test_scipy_agrees(numbers, confidence):
    k, _, n = numbers
    found = wilson(k, n, confidence)
    wanted = binomtest(k, n).proportion_ci(confidence, method="wilson")
    assert found.lo == pytest.approx(wanted.low, abs=1e-12)
    assert found.hi == pytest.approx(wanted.high, abs=1e-12)


@given(counts(), CONFIDENCE)
def test_the_interval_contains_the_bounds_and_stays_within_0_and_1(numbers, confidence):
    k, u, n = numbers
    found, bounds = wilson_with_unresolved(k, u, n, confidence), identification_bounds(k, u, n)
    assert 0 <= found.lo <= bounds.lo <= bounds.hi <= found.hi <= 1


@given(counts(), CONFIDENCE)
def test_the_ends_are_exact_at_nothing_and_at_everything(numbers, confidence):
    _, _, n = numbers
    assert wilson(0, n, confidence).lo == 0.0
    assert wilson(n, n, confidence).hi == 1.0


@given(counts(), CONFIDENCE)
def test_symmetric_under_k_to_n_minus_k(numbers, confidence):
    k, _, n = numbers
    one, other = wilson(k, n, confidence), wilson(n - k, n, confidence)
    assert one.lo == pytest.approx(1 - other.hi, abs=1e-14)
    assert one.hi == pytest.approx(1 - other.lo, abs=1e-14)


@given(counts(), CONFIDENCE)
def test_monotone_in_k_and_in_the_unresolved(numbers, confidence):
    k, u, n = numbers
    now = wilson_with_unresolved(k, u, n, confidence)
    if k + u < n:
        more = wilson_with_unresolved(k + 1, u, n, confidence)
        assert more.lo > now.lo
        assert more.hi > now.hi
        unsure = wilson_with_unresolved(k, u + 1, n, confidence)
        assert unsure.lo == now.lo
        assert unsure.hi > now.hi


@given(counts(), CONFIDENCE)
def test_every_completion_of_the_unresolved_lies_inside(numbers, confidence):
    k, u, n = numbers
    found = wilson_with_unresolved(k, u, n, confidence)
    for true in {k, k + u // 2, k + u}:
        complete = wilson(true, n, confidence)
        assert found.lo <= complete.lo
        assert complete.hi <= found.hi


def test_nothing_planned_has_no_interval():
    assert wilson(0, 0) is None
    assert wilson_with_unresolved(0, 0, 0) is None
    assert identification_bounds(0, 0, 0) is None


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0, float("nan")])
def test_an_impossible_confidence_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence"):
        wilson(1, 2, confidence)


@pytest.mark.parametrize("numbers", [(-1, 0, 3), (1, -1, 3), (2, 2, 3), (1, 0, 0)])
def test_impossible_counts_are_refused(numbers):
    with pytest.raises(ValueError, match="impossible counts"):
        wilson_with_unresolved(*numbers)
