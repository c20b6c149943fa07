"""The quick canonical form is the slow one, byte for byte, or the slow one's error."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.canonical import MAX_SAFE_INTEGER, canonical_bytes, digest
from impact_twin.errors import InputError
from impact_twin.proofrun.quick import canonical_parsed, digest_parsed

NUMBERS = (
    st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-30, 30).map(lambda power: 10.0**power)
    | st.tuples(st.integers(-(10**6), 10**6), st.integers(-12, 25)).map(
        lambda pair: float(f"{pair[0]}e{pair[1]}")
    )
)
TEXTS = st.text() | st.sampled_from(["1.0,", "2e-07", '"', "\\", "9" * 17, "\U0001f600", "\ufb33"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


@given(VALUES)
def test_quick_and_slow_agree(value):
    try:
        slow = canonical_bytes(value)
    except InputError:
        with pytest.raises(InputError):
            canonical_parsed(value)
    else:
        assert canonical_parsed(value) == slow


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53, -(2**53), [10**400], "\ud800", {"\ud800": 1}],
    ids=repr,
)
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(InputError):
        canonical_parsed(value)


def test_escapes_take_no_more_than_some_times_their_size():
    value = {"a": "\n" * 1_000_000}
    tracemalloc.start()
    canonical_parsed(value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_keys_sort_by_utf_16_code_units():
    value = {"\ufb33": 1, "\U0001f600": 2, "a": 3}
    assert canonical_parsed(value) == canonical_bytes(value)
    assert digest_parsed(value) == digest(value)
