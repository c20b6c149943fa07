"""The observation table: coding, validation, selection."""

import numpy as np
import pytest

from impact_twin.statistics.table import (
    OUTCOME_CLASSES,
    CaseObservation,
    Observation,
    ObservationTable,
)


def row(pair="a", trial=1, outcome="resisted", **poisoned):
    clean = CaseObservation(True, mission=True, decision="x", trace="t0", start=1)
    return Observation(pair, trial, outcome, clean, clean._replace(**poisoned))


def test_the_classes_stand_in_order_of_precedence():
    assert OUTCOME_CLASSES == (
        "compromised",
        "unsafe_baseline",
        "unresolved",
        "attempted",
        "incapable",
        "unexposed",
        "derailed",
        "swayed",
        "resisted",
    )


def test_decisions_and_traces_share_their_codes_between_the_twins():
    table = ObservationTable.from_rows(
        [row(), row(trial=2, decision="y", trace=None), row(trial=3, decision=None, start=None)]
    )
    assert table.clean.decision.tolist() == [0, 0, 0]
    assert table.poisoned.decision.tolist() == [0, 1, -1]
    assert table.poisoned.trace.tolist() == [0, -1, 0]
    assert np.isnan(table.poisoned.start[2])


def test_pairs_keep_the_order_asked_for_and_may_have_no_rows():
    table = ObservationTable.from_rows([row("b"), row("a")], ["a", "b", "c"])
    assert table.pairs == ("a", "b", "c")
    assert table.trials_per_pair.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row(), row()], "twice"),
        ([row(trial=0)], "count from 1"),
        ([row(outcome="fine")], "'fine' is not an outcome class"),
        ([row("z")], "'z' is not one of"),
    ],
)
def test_a_bad_row_is_refused_and_named(rows, words):
    with pytest.raises(ValueError, match=words):
        ObservationTable.from_rows(rows, ["a"])


def test_sparse_trial_numbers_are_still_checked_for_duplicates():
    rows = [row(trial=10**9), row(trial=1), row(trial=10**9)]
    with pytest.raises(ValueError, match="twice"):
        ObservationTable.from_rows(rows)


def test_columns_of_another_length_type_or_domain_are_refused(random_table):
    table = random_table(1)
    fields = vars(table)
    for change, words in (
        ({"trial": table.trial[:-1]}, "shape"),
        ({"outcome": table.outcome.astype(float)}, "kind"),
        ({"outcome": table.outcome + 9}, "between 0 and 8"),
        ({"pair": table.pair - 1}, "between"),
        ({"pairs": ("a",) * 5}, "twice"),
    ):
        with pytest.raises(ValueError, match=words):
            ObservationTable(**{**fields, **change})


def test_an_empty_table_is_a_table():
    table = ObservationTable.from_rows([], ["a", "b"])
    assert len(table) == 0
    assert table.trials_per_pair.tolist() == [0, 0]


def test_select_keeps_the_pairs_and_takes_masks_and_row_numbers(random_table):
    table = random_table(2)
    some = table.select(table.trial <= 3)
    assert some.pairs == table.pairs
    assert some.trials_per_pair.tolist() == [3] * 5
    back = table.select(np.arange(len(table))[::-1])
    assert back.clean.trace.tolist() == table.clean.trace.tolist()[::-1]
