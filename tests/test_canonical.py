import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.canonical import (
    canonical_bytes,
    digest,
    loads_strict,
    outside_strings,
    read_strict,
    split_strings,
)
from impact_twin.errors import InputError

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    # RFC 8785 spells 2.0**53 as an integer, which the reader then refuses.
    | st.floats(-(2.0**52), 2.0**52, allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: (
        st.lists(children)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children)
    ),
    max_leaves=20,
)


def test_keys_are_sorted_by_utf16_code_units():
    # The example of RFC 8785, section 3.2.3: U+FB33 sorts after the surrogate pair of U+1F600.
    value = {"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3, "\r": 4, "1": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(canonical_bytes(value)).values()) == [4, 5, 6, 7, 3, 2, 1]


def test_numbers_are_written_as_ecmascript_writes_them():
    assert canonical_bytes([1e30, 4.5, 2e-3, 1e-27, 333333333.33333329, -0.0]) == (
        b"[1e+30,4.5,0.002,1e-27,333333333.3333333,0]"
    )


@given(JSON_VALUES)
def test_canonical_bytes_survive_a_strict_round_trip(value):
    data = canonical_bytes(value)
    assert canonical_bytes(loads_strict(data)) == data


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53 + 1, "\ud800", {"\ud800": 1}])
def test_what_has_no_canonical_form_is_an_input_error(value):
    with pytest.raises(InputError):
        digest(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1,"a":2}', "twice"),
        (b'[{"b":{"a":1,"\\u0061":2}}]', "twice"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "double precision"),
        (b"[-1e400]", "double precision"),
        (b"[9007199254740993]", "2^53"),
        (b"[" + b"9" * 5000 + b"]", "2^53"),
        (b'"\xff"', "not UTF-8 at byte 1"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b"", "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"[01]", "not JSON"),
        (b'["a\nb"]', "not JSON"),
        (b'["\\ud800"]', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b"[" * 65 + b"]" * 65, "deeper than 64"),
        (b"[" * 100_000, "deeper than 64"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper than 64"),
    ],
)
def test_hostile_json_is_refused_with_its_reason(data, message):
    with pytest.raises(InputError, match="f.json: .*" + message.replace("^", r"\^")):
        loads_strict(data, where="f.json")


def test_brackets_inside_strings_are_not_depth():
    text = json.dumps(['[[[{{{"\\' * 100])
    assert loads_strict(text.encode()) == json.loads(text)


def test_the_size_cap_holds_for_bytes_and_files(tmp_path):
    path = tmp_path / "big.json"
    path.write_bytes(b'"' + b"x" * 100 + b'"')
    with pytest.raises(InputError, match="larger than 101 bytes"):
        read_strict(path, max_bytes=101)
    assert read_strict(path, max_bytes=102) == "x" * 100
    with pytest.raises(InputError, match="can't be read"):
        read_strict(tmp_path / "none.json")


def test_what_stands_in_a_string_is_no_bracket():
    text = json.dumps({"a[": ["\\", '"{', '\\"'], "b": 1})
    assert "".join(outside_strings(text)) == "{: [, , ], : 1}"
    assert '"'.join(split_strings(text)) == text
    # A string without an end goes on to the end.
    assert outside_strings('["[[' + '\\"' * 5) == ["["]


def test_a_text_full_of_escapes_takes_no_more_than_some_times_its_size():
    data = b'{"a":"' + b"\\n" * 1_000_000 + b'"}'
    tracemalloc.start()
    loads_strict(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(data)


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_input_errors(data):
    try:
        value = loads_strict(data)
    except InputError:
        return
    assert value == json.loads(data)
