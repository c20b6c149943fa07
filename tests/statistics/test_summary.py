"""The summary as a whole."""

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impact_twin.statistics.difference import TwoGroups, miettinen_nurminen
from impact_twin.statistics.intervals import wilson_with_unresolved
from impact_twin.statistics.rates import RATE_NAMES
from impact_twin.statistics.replicates import COPIED, NO_COPYING_SEEN
from impact_twin.statistics.stability import STABLE, UNDETERMINED, VARIABLE
from impact_twin.statistics.summary import SAMPLING_UNIT, summarise
from impact_twin.statistics.table import (
    OUTCOME_CLASSES,
    CaseObservation,
    Observation,
    ObservationTable,
)


def with_traces(table):
    """The same table with a different trace in every case, so that nothing looks copied."""
    rows = len(table)
    clean = dataclasses.replace(table.clean, trace=np.arange(rows))
    poisoned = dataclasses.replace(table.poisoned, trace=np.arange(rows) + rows)
    return dataclasses.replace(table, clean=clean, poisoned=poisoned)


def test_a_small_report_by_hand(table_of):
    found = summarise(with_traces(table_of(a="RRRRR", b="RCRRC", c="CCUCC", d="URRRR")))
    labels = [pair.label for pair in found.pairs]
    assert labels == [STABLE, VARIABLE, UNDETERMINED, UNDETERMINED]
    whole = found.aggregate
    assert whole.sampling_unit == SAMPLING_UNIT == "fixed_suite_pair_trial"
    assert (whole.n, whole.equal_n, whole.replicates) == (20, True, NO_COPYING_SEEN)
    assert tuple(whole.classes) == OUTCOME_CLASSES
    assert (whole.classes["resisted"], whole.classes["compromised"]) == (12, 6)
    assert tuple(whole.rates) == RATE_NAMES
    attack = whole.rates["attack_success"]
    assert (attack.count, attack.unresolved, attack.n, attack.rate) == (6, 2, 20, 0.3)
    assert attack.bounds == (0.3, 0.4)
    assert attack.wilson == wilson_with_unresolved(6, 2, 20)
    assert whole.rates["benign_utility"].count == 20
    second = found.pairs[1]
    assert second.disagreement == pytest.approx(2 * 2 * 3 / 20)
    assert second.disagreement_bounds == (0.6, 0.6)
    assert (second.distinct_decisions.clean, second.distinct_decisions.poisoned) == (1, 2)
    assert second.distinct_traces.poisoned == 5
    assert second.attack_at_k[1].bounds == pytest.approx((0.7, 0.7))
    assert found.pairs[2].disagreement == 0.0
    assert found.pairs[2].disagreement_bounds == pytest.approx((0.0, 0.4))
    assert found.pairs[0].stability.per_pair == pytest.approx(1 - 0.05**0.2)
    assert found.pairs[0].stability.joint == pytest.approx(1 - (0.05 / 4) ** 0.2)
    assert found.pairs[1].stability is None


def test_the_attack_effect_on_utility(table_of):
    found = summarise(with_traces(table_of(a="RRRRR", b="RCRRC", c="CCUCC")))
    effect = found.aggregate.attack_effect_on_utility
    assert effect.difference == pytest.approx((5 + 3 + 0) / 15 - 1)
    assert effect.bounds == pytest.approx((8 / 15 - 1, 9 / 15 - 1))
    low = [TwoGroups(5, 5, 5, 5), TwoGroups(3, 5, 5, 5), TwoGroups(0, 5, 5, 5)]
    high = [*low[:2], TwoGroups(1, 5, 5, 5)]
    assert effect.interval.lo == miettinen_nurminen(low).lo
    assert effect.interval.hi == miettinen_nurminen(high).hi


def test_copies_withhold_intervals_and_bounds_but_not_counts(table_of):
    found = summarise(with_traces(table_of(a="RRRRR", b="RRRRR")), copied=True)
    assert found.aggregate.replicates == COPIED
    for rate in found.aggregate.rates.values():
        assert rate.wilson is None
        assert rate.fixed_suite is None
        assert rate.bounds is not None
    assert found.aggregate.attack_effect_on_utility.interval is None
    assert found.aggregate.attack_effect_on_utility.difference == 0.0
    pair = found.pairs[0]
    assert pair.label == STABLE
    assert pair.stability is None
    assert pair.pass_k[0].interval is None


def test_no_variation_withholds_pair_by_pair(table_of):
    table = table_of(a="RRRRR", b="RCRRR")
    frozen = dataclasses.replace(table.clean, trace=np.zeros(len(table), dtype=np.int64))
    found = summarise(dataclasses.replace(table, clean=frozen))
    still, moving = found.pairs
    assert still.rates["resisted"].wilson is None
    assert still.stability is None
    assert moving.rates["resisted"].wilson is not None
    assert found.aggregate.rates["resisted"].wilson is not None


def test_an_all_unresolved_report_knows_nothing():
    rows = [
        Observation(pair, trial, "unresolved", CaseObservation(False), CaseObservation(False))
        for pair in "ab"
        for trial in range(1, 8)
    ]
    found = summarise(ObservationTable.from_rows(rows))
    for rate in found.aggregate.rates.values():
        assert (rate.count, rate.unresolved) == (0, 14)
        assert rate.bounds == (0.0, 1.0)
        assert rate.wilson == (0.0, 1.0)
        assert rate.fixed_suite == (0.0, 1.0)
    assert {pair.label for pair in found.pairs} == {UNDETERMINED}
    assert found.pairs[0].disagreement is None
    assert found.pairs[0].disagreement_bounds == pytest.approx((0.0, 1.0))
    assert found.aggregate.attack_effect_on_utility.bounds == (-1.0, 1.0)


def test_one_trial_unequal_n_and_an_empty_pair(table_of):
    one = summarise(table_of(a="R"))
    assert one.pairs[0].label == UNDETERMINED
    assert one.pairs[0].disagreement is None
    assert [line.k for line in one.pairs[0].pass_k] == [1]
    uneven = summarise(table_of(a="RRR", b="RC", c=""))
    assert uneven.aggregate.equal_n is False
    assert uneven.aggregate.rates["resisted"].fixed_suite is None
    assert uneven.pairs[2].rates["resisted"].rate is None
    empty = summarise(ObservationTable.from_rows([], ["a"]))
    assert empty.aggregate.n == 0
    assert empty.aggregate.attack_effect_on_utility.difference is None


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 12), st.randoms())
def test_the_order_of_rows_and_of_trials_changes_nothing(
    random_table, seed, pairs, trials, shuffler
):
    table = random_table(seed, pairs, trials)
    order = np.array(shuffler.sample(range(len(table)), len(table)), dtype=np.int64)
    assert summarise(table.select(order)) == summarise(table)
    renumbered = dataclasses.replace(table, trial=trials + 1 - table.trial)
    assert summarise(renumbered) == summarise(table)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.5, 0.999))
def test_every_interval_contains_its_bounds(random_table, seed, confidence):
    found = summarise(random_table(seed), confidence)
    lists = [found.aggregate.rates, *(pair.rates for pair in found.pairs)]
    for rates in lists:
        for rate in rates.values():
            for interval in (rate.wilson, rate.fixed_suite):
                if interval is not None:
                    assert interval.lo <= rate.bounds.lo + 1e-12
                    assert rate.bounds.hi <= interval.hi + 1e-12
    effect = found.aggregate.attack_effect_on_utility
    assert effect.bounds.lo <= effect.difference <= effect.bounds.hi
    assert sum(found.aggregate.classes.values()) == found.aggregate.n == 35


def test_a_table_without_pairs_has_an_empty_summary():
    found = summarise(ObservationTable.from_rows([]))
    assert found.pairs == ()
    assert found.aggregate.rates["resisted"].rate is None


def test_a_million_pair_trials_take_less_than_a_second_of_cpu(random_table):
    table = random_table(1, pairs=5, trials=200_000)
    start = time.process_time()
    found = summarise(table)
    assert time.process_time() - start < 1.0
    assert found.aggregate.n == 1_000_000


def test_an_impossible_confidence_is_refused(table_of):
    with pytest.raises(ValueError, match="confidence"):
        summarise(table_of(a="R"), 1.0)
