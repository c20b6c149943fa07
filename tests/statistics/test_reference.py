"""Every part of the reference file is either tested here or named as a method we don't use."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent

TESTED = {
    "wilson": {"cases", "coverage_by_enumeration", "P_lower_bound_exceeds_p"},
    "fixed_suite_aggregate": {"cases", "coverage"},
    "disagreement": {"cases", "unbiased_check"},
    "order_dependence": {"runs", "stratified_trend"},
    "variance_components": {"case"},
    "pass_k": {"cases", "unbiased_check", "suite"},
    "stability": {"upper_bounds", "n_needed"},
    "technical_replicates": {"seed000_like", "copied_suite", "copied_pair"},
    "unresolved": {"cases", "coverage", "seed002"},
    "comparison": {"datasets", "smallest_x_vs_zero"},
    "sequential": {
        "rule_A_stop_at_halfwidth",
        "rule_B_stop_when_lower_gt_0_8",
        "fixed_n_false_claim",
        "planned_looks",
        "ever_miss_within_400",
        "cs_reference",
        "betting_reference_grid_0_001",
    },
    "planning": {"n_halfwidth", "n_gate", "gate_power"},
    "cluster_bootstrap": {
        "six_pairs",
        "two_suite",
        "board_like",
        "pair_level_coverage",
        "min_successes_for_confirmed",
    },
}

NOT_OURS = {
    "wilson": {"agreement": "two libraries against each other"},
    "fixed_suite_aggregate": {
        "published_fixtures": "Yan and Su's interval",
        "random_suites": "means over random suites; the coverage cells test the same code",
        "hoeffding": "a check of the theorem",
    },
    "disagreement": {"identity": "a sentence; tested as a property"},
    "order_dependence": {
        "ljung_box_actual_size_5pct": "Ljung-Box, not used",
        "exact_runs_actual_size_5pct": "the runs test, not used",
        "cochran_q": "Cochran's Q, not used",
    },
    "stability": {
        "actual_error_of_wilson_bounds": "Wilson as a stability bound, not used",
        "flip_probability_from_eps": "not printed",
        "multinomial": "simultaneous multinomial intervals, not used",
    },
    "technical_replicates": {
        "partial_cache_mc": "simulated by others; a reason to withhold, not a figure",
        "identical_trace_probability": "powers of a per-token probability, not printed",
    },
    "comparison": {
        "paired": "McNemar's test for paired runs; two reports are not paired",
        "difference_coverage_mc": "simulated without naming its rates; ours is in the docs",
    },
    "sequential": {"rule_A_min": "a minimum over rule A"},
    "cluster_bootstrap": {"monte_carlo_endpoint_sd": "ours is exact"},
}

WORDS = {"title", "formula", "sources", "tolerance"}


def test_every_part_is_accounted_for(reference):
    assert set(reference) == set(TESTED)
    for name, section in reference.items():
        known = TESTED[name] | set(NOT_OURS.get(name, {})) | WORDS
        assert set(section) <= known, f"{name}: {set(section) - known}"
        assert TESTED[name] <= set(section), f"{name}: {TESTED[name] - set(section)}"


@pytest.mark.parametrize("name", TESTED)
def test_what_is_called_tested_is_named_by_a_test(name):
    others = [path for path in HERE.glob("test_*.py") if path != Path(__file__)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in others)
    for part in TESTED[name] | {name}:
        assert f'"{part}"' in text, part
