"""The coverage benchmark: its laws are right, and the page's tables come from it."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from impact_twin.statistics.fixed_suite import fixed_suite
from impact_twin.statistics.intervals import wilson

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "statistics.md"


@pytest.fixture(scope="module")
def benchmark():
    """The benchmark's modules by name."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        names = ("coverage", "coverage_intervals", "coverage_laws", "coverage_words")
        return {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.pop(0)


def test_its_suite_ends_are_the_tool_s(benchmark):
    random = np.random.default_rng(0)
    for n in (1, 5, 20):
        counts = random.integers(0, n + 1, (200, 5))
        counts[:2] = [[0] * 5, [n] * 5]
        sums, squares = counts.sum(axis=1), (counts**2).sum(axis=1)
        for fixed in (False, True):
            low, high = benchmark["coverage_laws"].suite_ends(sums, squares, n, 5, fixed)
            for row, lo, hi in zip(counts.tolist(), low, high, strict=True):
                wanted = fixed_suite(row, [0] * 5, [n] * 5) if fixed else wilson(sum(row), 5 * n)
                assert (lo, hi) == pytest.approx(wanted, abs=1e-12)


def test_its_suite_law_is_what_enumeration_gives(benchmark):
    shares, n = (0.2, 0.7), 3
    laws = benchmark["coverage_laws"]
    sums, squares, mass = laws.suite_law(shares, n)
    wanted = {}
    for a, weight_a in enumerate(laws.binomial(n, 0.2)):
        for b, weight_b in enumerate(laws.binomial(n, 0.7)):
            key = (a + b, a * a + b * b)
            wanted[key] = wanted.get(key, 0.0) + weight_a * weight_b
    found = dict(zip(zip(sums.tolist(), squares.tolist(), strict=True), mass, strict=True))
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("n", [5, 10, 20, 50])
def test_coverage_of_the_suite_s_intervals(reference, benchmark, n):
    coverage = benchmark["coverage_intervals"].suite_coverage
    vectors = dict(zip("ABCDEFGHIJ", benchmark["coverage_laws"].VECTORS.values(), strict=True))
    for name, cells in reference["fixed_suite_aggregate"]["coverage"].items():
        if n == 50 and name[0] in "BCFI":
            continue  # a few seconds each, and no other code than the rest
        cell = cells[str(n)]
        # The reference leaves out very rare tables above n = 10 and simulates where not exact.
        tolerance = (1e-9 if n <= 10 else 1e-6) if cell["exact"] else 2e-3
        for fixed, method in ((False, "pooled_wilson"), (True, "wilson_deff_shrink_half")):
            wanted = cell["methods"][method]["coverage"]
            found = coverage(vectors[name[0]], n, fixed)
            assert found == pytest.approx(wanted, abs=tolerance), (name, method)


def test_coverage_of_wilson_over_the_grid(reference, benchmark):
    for n, methods in reference["wilson"]["coverage_by_enumeration"].items():
        covered, above = benchmark["coverage_intervals"].wilson_over_grid(int(n))
        wanted = methods["wilson"]
        assert covered.mean() == pytest.approx(wanted["mean"], abs=1e-9)
        assert covered.min() == pytest.approx(wanted["min"], abs=1e-9)
        assert (covered < 0.95).mean() == pytest.approx(wanted["share_below_95"], abs=1e-3)
        line = reference["wilson"]["P_lower_bound_exceeds_p"][n]
        assert above.max() == pytest.approx(line["max_P_lower_gt_p"], abs=1e-9)
        assert above.mean() == pytest.approx(line["mean"], abs=1e-9)


def test_coverage_with_unresolved_cases(reference, benchmark):
    for line in reference["unresolved"]["coverage"]:
        if line["method"] == "union":
            found = benchmark["coverage_intervals"].unresolved_coverage(
                line["N"], line["pl"], line["pu"]
            )
            wanted = [line["cov_lower_end"], line["cov_upper_end"], line["cov_set"]]
            assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("name", ["single", "stable", "repeated", "replicates", "bootstrap"])
def test_the_page_shows_what_the_command_gives(benchmark, name):
    page = PAGE.read_text(encoding="utf-8")
    module = benchmark["coverage"]
    assert module.inserted(page, name, module.TABLES[name]()) == page


def test_every_table_has_its_place_on_the_page(benchmark):
    page = PAGE.read_text(encoding="utf-8")
    for name in benchmark["coverage"].TABLES:
        made = page.partition(f"<!-- table: {name} -->")[2].partition(f"<!-- end: {name} -->")[0]
        assert made.count("| --- |") >= 1, name


def test_a_page_without_markers_is_refused(benchmark):
    with pytest.raises(ValueError, match="no markers for the table single"):
        benchmark["coverage"].inserted("text", "single", "made")


def test_the_words_that_are_simulated_use_the_tool(benchmark):
    words = benchmark["coverage_words"]
    assert words.words(((0, 10),) * 5, 10) == (True, True)
    assert words.words(((5, 5),) * 5, 10) == (False, False)
    table = words.simulated((1.0, 0.0), 4, np.random.default_rng(0))
    assert table.poisoned.mission.tolist() == [True] * 4 + [False] * 4
    assert (table.clean.start != table.poisoned.start).all()
