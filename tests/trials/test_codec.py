import json
import math

from hypothesis import given
from hypothesis import strategies as st

from impact_twin.agents.protocol import ModelCall, Usage
from impact_twin.canonical import canonical_bytes
from impact_twin.trials.codec import (
    case_from_json,
    case_to_json,
    clean_call,
    clean_usage,
    dumps,
    storable_json,
)
from impact_twin.trials.records import Attempt, CaseKey, CaseRecord

texts = st.text(max_size=20)
usages = st.builds(
    Usage,
    input_tokens=st.integers(0, 2**50),
    output_tokens=st.integers(0, 2**50),
    cost_usd=st.none() | st.floats(0, 1e6),
)
calls = st.builds(
    ModelCall,
    started=st.floats(0, 1e10),
    duration_s=st.floats(0, 1e5),
    finish_reason=st.none() | texts,
    response_id=st.none() | texts,
    http_status=st.none() | st.integers(100, 599),
    error=st.none() | texts,
    cached=st.booleans(),
    usage=usages,
)
attempts = st.builds(
    Attempt,
    termination=texts,
    error_kind=texts,
    message=texts,
    http_status=st.none() | st.integers(100, 599),
    requests=st.integers(0, 100),
    started=st.floats(0, 1e10),
    duration_s=st.floats(0, 1e5),
    trace=texts,
)
records = st.builds(
    CaseRecord,
    key=st.builds(
        CaseKey, pair=texts, trial=st.integers(1, 99), twin=st.sampled_from(["clean", "poisoned"])
    ),
    position=st.integers(0, 99),
    termination=texts,
    trace=texts,
    duration_s=st.floats(0, 1e5),
    usage=usages,
    model_calls=st.lists(calls, max_size=3).map(tuple),
    attempts=st.lists(attempts, max_size=3).map(tuple),
    delivered=st.none() | texts,
    delivered_text=st.none() | texts,
    late_calls=st.integers(0, 9),
    instance=st.none() | st.integers(0, 2**52),
    detail=st.dictionaries(texts, st.none() | texts | st.integers(), max_size=3),
)


@given(records)
def test_a_record_comes_back_from_its_json(record):
    assert case_from_json(json.loads(json.dumps(case_to_json(record)))) == record


wild = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(categories=["L", "Cs", "Cc", "So"]), max_size=8)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=12,
)


@given(wild)
def test_whatever_an_agent_leaves_can_be_stored_and_hashed(value):
    plain = storable_json(value)
    canonical_bytes(plain)
    assert json.loads(dumps(plain)) == plain
    json.loads(dumps(["\ud800", value]))[0].encode("utf-8")


def test_deep_and_strange_values_end():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert dumps(deep).count("[") < 50
    assert storable_json({"a": object(), "b": {1, 2}, 3: 10**5000}) == {
        "a": "object",
        "b": "set",
        "3": "an integer of more than 1000 digits",
    }


def test_impossible_figures_become_none_or_zero():
    assert clean_usage(Usage(-1, math.nan, math.inf)) == Usage(0, 0, None)
    assert clean_usage(Usage("7", True, -0.1)) == Usage(0, 0, None)
    assert clean_usage(Usage(10**400, 3.0, 10**400)) == Usage(0, 3, None)
    call = clean_call(
        ModelCall(math.nan, -1.0, "sto\ud800p", "x" * 9999, http_status="500", error=7)
    )
    assert call == ModelCall(0.0, 0.0, "sto\ufffdp", "x" * 500)
