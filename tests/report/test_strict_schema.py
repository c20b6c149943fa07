"""The compiled check against the standard's own library, and where it is stricter on purpose."""

import copy
import json
import math
import random

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry, Resource

from impact_twin.report.schema import FILES
from impact_twin.report.strict_schema import BrokenRuleError, compile_schema
from impact_twin.resources import data_folder


def schemas():
    folder = data_folder("schemas") / "1"
    return {name: json.loads((folder / name).read_text(encoding="utf-8")) for name in FILES}


def accepts(rule, value):
    try:
        rule(value)
    except BrokenRuleError:
        return False
    return True


def library(files, name):
    registry = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in files.values()
    )
    return jsonschema.Draft202012Validator(files[name], registry=registry)


RULE = compile_schema(schemas(), FILES[0])
LIBRARY = library(schemas(), FILES[0])


@pytest.mark.parametrize("name", FILES)
def test_our_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schemas()[name])


@pytest.mark.parametrize("name", FILES)
def test_our_schemas_close_every_object_that_is_not_open_on_purpose(name):
    """Open: what belongs to the agent, the world, or any JSON by nature."""
    open_on_purpose = {"agent", "spec", "final_state", "items", "arguments"}

    def walk(schema, field):
        if isinstance(schema, list):
            for item in schema:
                walk(item, field)
        elif isinstance(schema, dict):
            if "object" in schema.get("type", ()):
                closed = "additionalProperties" in schema
                assert closed or field in open_on_purpose, f"{name}: {field}"
            for key, item in schema.items():
                walk(item, key)

    walk(schemas()[name], name)


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    yield path


def put(report, path, change):
    changed = copy.deepcopy(report)
    if not path:
        return change(changed)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = change(holder[path[-1]])
    return changed


CHANGES = [
    lambda value: None,
    lambda value: "x",
    lambda value: -1,
    lambda value: 2,
    lambda value: 0.5,
    lambda value: True,
    lambda value: [],
    lambda value: {},
    lambda value: [value, value],
    lambda value: {"extra": value},
    lambda value: {**value, "extra": 1} if isinstance(value, dict) else value,
    lambda value: dict(list(value.items())[1:]) if isinstance(value, dict) else value,
    lambda value: value[:1] if isinstance(value, list) else value,
]


@pytest.fixture(scope="module")
def small(stage):
    """A report with every kind of part, small enough to check a hundred changes of it."""
    found = stage.report({"award-bias": "feu"})
    case = found["pair_trials"][0]["clean"]
    digest = case["trace"]
    case["model_calls"] = [
        {
            "started": 1.5,
            "duration_s": 0.25,
            "finish_reason": "stop",
            "response_id": "r",
            "http_status": None,
            "error": None,
            "cached": False,
            "usage": {"input_tokens": 3, "output_tokens": 1, "cost_usd": None},
        }
    ]
    case["delivered_text"] = case["detail"] = digest
    found = json.loads(json.dumps(found))
    keep = sorted(found["traces"])[:2]
    for name in keep:
        found["traces"][name]["events"] = found["traces"][name]["events"][:2]
    found["traces"] = {name: found["traces"][name] for name in keep}
    found["texts"] = dict(list(found["texts"].items())[:2])
    found["pair_trials"] = found["pair_trials"][:1]
    return found


def test_a_whole_report_is_accepted_by_both(small, report):
    for value in (small, report):
        assert accepts(RULE, value)
        assert LIBRARY.is_valid(value)


def test_both_agree_on_changed_reports(small):
    rng = random.Random(5)
    paths = list(leaves(small))
    for _ in range(100):
        changed = put(small, rng.choice(paths), rng.choice(CHANGES))
        assert accepts(RULE, changed) == LIBRARY.is_valid(changed)


def test_every_field_that_is_required_is_missed(small):
    for path in (("identity",), ("plan", "trials"), ("pair_trials", 0, "clean", "trace")):
        holder = copy.deepcopy(small)
        at = holder
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        with pytest.raises(BrokenRuleError, match=f"lacks {path[-1]}") as caught:
            RULE(holder)
        assert caught.value.path == [str(key) for key in path[:-1]]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 1.0),
        (("schema_version",), True),
        (("plan", "trials"), 3.0),
        (("pair_trials", 0, "trial"), 1.0),
        (("pair_trials", 0, "clean", "position"), 0.0),
        (("summary", "aggregate", "n"), 3.0),
        (("summary", "aggregate", "classes", "resisted"), False),
        (("plan", "digest"), "sha256:" + "0" * 64 + "\n"),
        (("pair_trials", 0, "clean", "trace"), "sha256:" + "0" * 64 + "\n"),
    ],
)
def test_it_is_stricter_than_the_library(small, path, value):
    changed = put(small, path, lambda old: value)
    with pytest.raises(BrokenRuleError) as caught:
        RULE(changed)
    assert caught.value.path == [str(key) for key in path]


RULES = [
    {"type": "integer", "minimum": 2, "exclusiveMaximum": 5},
    {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 2},
    {"enum": ["a", None, "b"]},
    {"const": "a"},
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "pattern": "^(a|bc?)+$"},
    {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
    {"type": "array", "uniqueItems": True},
    {"type": "array", "maxItems": 0},
    {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}}]},
    {"type": "object", "required": ["a"], "properties": {"a": {"type": "null"}}},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {
        "type": "object",
        "properties": {"a": {"type": "boolean"}},
        "additionalProperties": False,
        "propertyNames": {"pattern": "^[ab]$"},
    },
    {"$ref": "#/$defs/own"},
    {"minimum": 1},
    {"properties": {"a": {"type": "string"}}},
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 7),
    st.floats(-3, 7).filter(lambda value: not float(value).is_integer()),
    st.text("abc", max_size=4),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.sampled_from(RULES), VALUES)
def test_single_keywords_agree_with_the_library(schema, value):
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "$defs": {"own": {"type": "array", "items": {"enum": ["a", 1]}}},
    }
    rule = compile_schema({"s": whole}, "s")
    assert accepts(rule, value) == jsonschema.Draft202012Validator(whole).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"oneOf": []}, "unsupported keywords"),
        ({"properties": {"a": {"format": "date"}}}, "unsupported keywords"),
        ({"$ref": "other.json"}, "no schema other.json"),
        ({"$ref": "#/$defs/missing"}, "no schema s#missing"),
        ({"$ref": "#/properties/a"}, "unsupported reference"),
        ({"pattern": "a"}, "not anchored"),
    ],
)
def test_what_it_cannot_check_is_refused(schema, message):
    with pytest.raises(ValueError, match=message):
        compile_schema({"s": schema}, "s")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_no_number_that_is_none_fits_a_range(value):
    rule = compile_schema({"s": {"type": "number", "minimum": 0, "maximum": 1}}, "s")
    assert not accepts(rule, value)


def test_a_message_is_short_and_names_the_field():
    rule = compile_schema({"s": {"properties": {"a": {"items": {"type": "null"}}}}}, "s")
    with pytest.raises(BrokenRuleError) as caught:
        rule({"a": [None, "x" * 10_000]})
    assert caught.value.path == ["a", "1"]
    assert len(caught.value.message) < 100
