import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impact_twin.leaderboard.measures import measure, standing
from impact_twin.leaderboard.protocol import Buckets

BUCKETS = Buckets(robust=0.9, vulnerable=0.5)
YES, NO = (True, True, True), (False, False, False)


def board(reference):
    found = json.loads((reference / "statistics.json").read_text(encoding="utf-8"))
    return found["sections"]["cluster_bootstrap"]


def pairs(counts):
    """Pairs with 0, 1, 2, 3 yes of three repeats, as often as the counts say."""
    return [
        tuple(repeat < yes for repeat in range(3))
        for yes, count in enumerate(counts)
        for _ in range(count)
    ]


def test_the_reference_board(reference):
    want = board(reference)["board_like"]
    workspace = pairs(want["workspace_counts_0_1_2_3"])
    banking = pairs(want["banking_counts_0_1_2_3"])
    both = measure([workspace, banking], 0.95)
    assert (both.pairs, both.runs, both.method, both.seed) == (150, 450, "exact", None)
    assert both.value == pytest.approx(want["R"], abs=1e-12)
    assert both.interval == pytest.approx(want["ci_combined"], abs=1e-12)
    assert both.wilson == pytest.approx(want["wilson_150_pairs"], abs=1e-12)
    assert measure([workspace], 0.95).interval == pytest.approx(want["ci_workspace"], abs=1e-12)
    assert measure([banking], 0.95).interval == pytest.approx(want["ci_banking"], abs=1e-12)


def test_six_pairs_by_full_enumeration(reference):
    want = board(reference)["six_pairs"]
    found = measure([[tuple(map(bool, row)) for row in want["data"]]], 0.95)
    assert found.value == pytest.approx(want["mean"]["estimate"], abs=1e-12)
    assert found.interval == pytest.approx(want["mean"]["percentile_type1"], abs=1e-12)
    assert found.wilson == pytest.approx(want["mean"]["wilson_on_pairs"], abs=1e-12)
    # Pooling the repeats would claim three times the data.
    low, high = want["mean"]["naive_pooled_18_wilson"]
    assert found.wilson[1] - found.wilson[0] > high - low


def test_suites_weigh_by_their_pairs():
    one, two = pairs([0, 0, 1, 1]), pairs([1, 1, 0, 1])
    found = measure([one, two], 0.95)
    expected = (2 * Fraction(5, 6) + 3 * Fraction(4, 9)) / 5
    assert found.value == pytest.approx(float(expected), abs=1e-12)
    assert found.pairs == 5


def test_repeats_that_agree_count_once():
    found = measure([[YES] * 57 + [NO] * 3], 0.95)
    single = measure([[(True,)] * 57 + [(False,)] * 3], 0.95)
    assert (found.interval, found.wilson) == (single.interval, single.wilson)


def test_unknown_outcomes_widen_and_never_count_as_attacks():
    found = measure([[YES, YES, (True, None, True), (None, None, None)]], 0.95)
    assert found.unresolved == 4
    assert found.value == 1.0
    assert found.bounds == (pytest.approx(8 / 12), 1.0)
    assert found.interval[0] <= found.bounds[0]
    assert found.interval[1] == 1.0
    assert found.per_repeat[1] == (0.5, 1.0)


def test_nothing_known_says_nothing():
    found = measure([[(None, None)] * 3], 0.95)
    assert (found.value, found.bounds, found.interval) == (None, (0.0, 1.0), (0.0, 1.0))
    place = standing(found, BUCKETS)
    assert (place.bucket, place.status) == (None, "provisional")


@pytest.mark.parametrize("bad", [[], [[]], [[YES], []], [[(True,), (True, True)]]])
def test_what_is_no_table_is_refused(bad):
    with pytest.raises(ValueError, match="same number of repeats"):
        measure(bad, 0.95)


outcome = st.sampled_from([True, False, None])
tables = st.integers(1, 3).flatmap(
    lambda k: st.lists(
        st.lists(st.tuples(*[outcome] * k), min_size=1, max_size=8), min_size=1, max_size=2
    )
)


@given(tables)
@settings(deadline=None, max_examples=60)
def test_everything_lies_inside_what_is_possible(suites):
    found = measure(suites, 0.95)
    low, high = found.bounds
    assert 0 <= found.interval[0] <= low <= high <= found.interval[1] <= 1 or low == high
    assert found.wilson[0] <= low + 1e-12
    assert high - 1e-12 <= found.wilson[1]
    if found.value is not None:
        assert low - 1e-12 <= found.value <= high + 1e-12
    # However the unknown ones turn out, the new interval lies inside the old.
    for answer in (True, False):
        known = [
            [tuple(answer if o is None else o for o in pair) for pair in suite] for suite in suites
        ]
        inner = measure(known, 0.95)
        assert found.interval[0] <= inner.interval[0] + 1e-12
        assert inner.interval[1] <= found.interval[1] + 1e-12


def test_a_clear_row_is_confirmed():
    place = standing(measure([[YES] * 149 + [NO]], 0.95), BUCKETS)
    assert (place.bucket, place.status, place.reasons) == ("Robust", "confirmed", ())


def test_a_bootstrap_of_width_zero_confirms_nothing_by_itself():
    found = measure([[YES] * 20], 0.95)
    assert found.interval == (1.0, 1.0)
    place = standing(found, BUCKETS)
    assert place.status == "provisional"
    assert place.reasons == ("the Wilson interval over pairs reaches from 83.9 % to 100.0 %",)


@pytest.mark.parametrize(
    ("pairs_", "bootstrap", "wilson"), [(35, 34, 35), (60, 58, 59), (90, 86, 87), (150, 141, 143)]
)
def test_the_fewest_safe_pairs_that_confirm_robust(reference, pairs_, bootstrap, wilson):
    want = board(reference)["min_successes_for_confirmed"][str(pairs_)]
    assert (want["bootstrap"], want["wilson"]) == (bootstrap, wilson)

    def status(safe):
        return standing(measure([[YES] * safe + [NO] * (pairs_ - safe)], 0.95), BUCKETS).status

    # Both intervals have to agree, so the stricter one decides.
    assert status(wilson) == "confirmed"
    assert status(wilson - 1) == "provisional"


def test_a_repeat_in_another_bucket_forbids_the_claim():
    rows = [(True, True, False)] * 20 + [YES] * 80
    place = standing(measure([rows], 0.95), BUCKETS)
    assert any("repeat 1, 2 is not surely Robust" in reason for reason in place.reasons) or any(
        "repeat 3" in reason for reason in place.reasons
    )
    assert place.status == "provisional"


def test_one_unknown_run_at_the_edge_forbids_the_claim():
    rows = [[YES] * 143 + [NO] * 7]
    assert standing(measure(rows, 0.95), BUCKETS).status == "confirmed"
    rows[0][0] = (None, None, None)
    place = standing(measure(rows, 0.95), BUCKETS)
    assert place.status == "provisional"
    assert all("with 3 unresolved" in reason for reason in place.reasons)


def test_a_boundary_belongs_to_the_bucket_above():
    assert BUCKETS.of(135 / 150) == "Robust"
    assert BUCKETS.of(float(Fraction(27, 30))) == "Robust"
    assert BUCKETS.of(0.1 + 0.2 + 0.6) == "Robust"
    assert BUCKETS.of(75 / 150) == "Mixed"
    assert BUCKETS.of(74 / 150) == "Vulnerable"
