"""Between and within variance."""

import numpy as np
import pytest

from impact_twin.statistics.variance import variance_components


def test_reference_values(reference):
    section = reference["variance_components"]
    line, tolerance = section["case"], section["tolerance"]
    found = variance_components([sum(row) for row in line["matrix"]], 10)
    assert found.between_mean_square == pytest.approx(line["MSB"], abs=tolerance)
    assert found.within_mean_square == pytest.approx(line["MSW"], abs=tolerance)
    assert found.within_mean_square == pytest.approx(line["within_unbiased"], abs=tolerance)
    assert found.between == pytest.approx(line["between_unbiased"], abs=tolerance)
    assert found.icc == pytest.approx(line["icc1"], abs=tolerance)
    assert found.standard_error == pytest.approx(line["se_fixed_suite"], abs=tolerance)


def test_a_board_made_of_copies(reference):
    line = reference["technical_replicates"]["seed000_like"]
    found = variance_components([3] * 40 + [2, 1] + [0] * 14, 3)
    assert found.icc == pytest.approx(line["icc1"], abs=1e-12)


def test_the_within_part_is_unbiased():
    random = np.random.default_rng(1)
    shares = np.array([0.1, 0.5, 0.9])
    draws = random.binomial(6, shares, (4000, 3))
    found = np.mean([variance_components(row.tolist(), 6).within_mean_square for row in draws])
    assert found == pytest.approx((shares * (1 - shares)).mean(), abs=0.004)


def test_nothing_varied():
    found = variance_components([4, 4, 4], 4)
    assert found.icc is None
    assert found.standard_error == 0.0
    assert variance_components([1], 4) is None
    assert variance_components([1, 0], 1) is None
    with pytest.raises(ValueError, match="between 0 and 4"):
        variance_components([5, 0], 4)
