"""Replicates: copied runs, and runs without variation."""

import numpy as np
import pytest

from impact_twin.statistics.intervals import wilson
from impact_twin.statistics.replicates import (
    COPIED,
    NO_COPYING_SEEN,
    NO_VARIATION_SEEN,
    replicates,
    withholds,
)
from impact_twin.statistics.table import CaseObservation, Observation, ObservationTable


def table(traces):
    """Traces per pair as (clean, poisoned) letters; `-` left no trace, `!` is unresolved."""
    rows = []
    for pair, (clean, poisoned) in traces.items():
        for trial, letters in enumerate(zip(clean, poisoned, strict=True), start=1):
            cases = [
                CaseObservation(letter != "!", trace=None if letter == "-" else letter)
                for letter in letters
            ]
            rows.append(Observation(pair, trial, "resisted", *cases))
    return ObservationTable.from_rows(rows, list(traces))


def test_identical_traces_in_both_twins_show_no_variation():
    found = replicates(table({"a": ("xxx", "yyy"), "b": ("zz", "zz")}))
    assert found.pairs == (NO_VARIATION_SEEN, NO_VARIATION_SEEN)
    assert found.suite == NO_VARIATION_SEEN


def test_one_twin_that_varies_is_variation():
    found = replicates(table({"a": ("xxx", "yzy")}))
    assert found.pairs == (NO_COPYING_SEEN,)


def test_a_pair_label_is_its_own_and_the_suite_needs_all():
    found = replicates(table({"a": ("xx", "yy"), "b": ("pq", "rr")}))
    assert found.pairs == (NO_VARIATION_SEEN, NO_COPYING_SEEN)
    assert found.suite == NO_COPYING_SEEN


def test_a_pair_without_repeats_neither_shows_nor_hides_anything():
    found = replicates(table({"a": ("xx", "yy"), "b": ("--", "--"), "c": ("x", "y")}))
    assert found.pairs == (NO_VARIATION_SEEN, NO_COPYING_SEEN, NO_COPYING_SEEN)
    assert found.suite == NO_VARIATION_SEEN
    assert replicates(table({"c": ("x", "y")})).suite == NO_COPYING_SEEN


def test_half_a_trace_of_an_unresolved_case_is_not_variation():
    found = replicates(table({"a": ("xxx", "yy!")}))
    assert found.suite == NO_VARIATION_SEEN


def test_outside_evidence_outranks_the_traces():
    found = replicates(table({"a": ("xy", "pq")}), copied=True)
    assert found.suite == COPIED
    assert found.pairs == (COPIED,)


def test_which_labels_withhold():
    assert [withholds(x) for x in (NO_COPYING_SEEN, NO_VARIATION_SEEN, COPIED)] == [0, 1, 1]


def test_why_copies_withhold_the_pooled_interval(reference):
    section = reference["technical_replicates"]
    for line in section["copied_suite"]:
        covered = 0.0
        for draw in np.ndindex(*(2,) * 5):
            weight = np.prod([p if x else 1 - p for p, x in zip(line["p"], draw, strict=True)])
            interval = wilson(sum(draw) * line["K"], 5 * line["K"])
            covered += weight * interval.contains(np.mean(line["p"]))
        assert covered == pytest.approx(line["coverage_pooled_5K"], abs=section["tolerance"])
    for line in section["copied_pair"]:
        n, p = line["K"], line["p"]
        covered = p * wilson(n, n).contains(p) + (1 - p) * wilson(0, n).contains(p)
        assert covered == pytest.approx(line["coverage"], abs=section["tolerance"])
