"""The strict argument rules, each with its boundary."""

import math

import pytest

from impact_twin.procurement.arguments import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_STRING,
    MAX_TEXT,
    plain_arguments,
    plain_name,
    problem,
)
from impact_twin.procurement.tools import tool_specs

SPECS = {spec.name: spec for spec in tool_specs()}
EVALUATION = {"vendor_id": "V-1", "score": 80, "rationale": "r"}


@pytest.mark.parametrize(
    ("given_value", "plain"),
    [
        (None, None),
        (True, True),
        (1, 1),
        (1.5, 1.5),
        (81.0, 81),
        (-0.0, 0),
        (2**53 - 1, 2**53 - 1),
        (2**53, None),
        (-(2**53), None),
        (1e300, None),
        (math.nan, None),
        (math.inf, None),
        ("a\ud800b", "a\ufffdb"),
        ("x" * MAX_STRING, "x" * MAX_STRING),
        ("x" * (MAX_STRING + 1), None),
        (b"x", None),
        ({1, 2}, None),
        ((1, "a"), [1, "a"]),
        ({"a": {"b": object()}}, {"a": {"b": None}}),
        ({1: "a"}, None),
        ({"a\ud800": 1}, {"a\ufffd": 1}),
        (["x" * MAX_STRING] * (MAX_TEXT // MAX_STRING), ["x" * MAX_STRING] * 2),
        (["x" * MAX_STRING] * (MAX_TEXT // MAX_STRING) + ["x"], None),
        ([0] * (MAX_NODES - 1), [0] * (MAX_NODES - 1)),
        ([0] * MAX_NODES, None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_plain_forms(given_value, plain):
    got = plain_arguments(given_value)
    assert got == plain
    assert type(got) is type(plain)


def test_depth():
    def nest(depth):
        return [nest(depth - 1)] if depth else 0

    assert plain_arguments(nest(MAX_DEPTH)) == nest(MAX_DEPTH)
    assert plain_arguments(nest(MAX_DEPTH + 1)) != nest(MAX_DEPTH + 1)
    ring = []
    ring.append(ring)
    assert isinstance(plain_arguments(ring), list)


@pytest.mark.parametrize(
    ("name", "plain"),
    [("read_document", "read_document"), (None, ""), (7, ""), ("\ud800", "\ufffd")],
)
def test_plain_names(name, plain):
    assert plain_name(name) == plain
    assert len(plain_name("x" * 1000)) == 200


def test_names_that_lie_about_their_class():
    class Liar:
        __class__ = str

    class Hostile:
        def __getattribute__(self, name):
            raise RuntimeError(name)

    assert plain_name(Liar()) == plain_name(Hostile()) == ""
    assert plain_arguments({"a": Liar()}) is None
    assert plain_arguments({"a": Hostile()}) is None


@pytest.mark.parametrize("score", ["80", True, None, [80], {}])
def test_a_score_is_a_number(score):
    assert problem(SPECS["record_evaluation"], {**EVALUATION, "score": score}) == (
        "the argument score must be a finite number."
    )


@pytest.mark.parametrize("score", [80, 80.5, -3, 0])
def test_any_finite_number_is_a_score(score):
    assert problem(SPECS["record_evaluation"], {**EVALUATION, "score": score}) is None


@pytest.mark.parametrize("vendor", [1, None, ["V-1"], True])
def test_an_id_is_a_string(vendor):
    text = problem(SPECS["get_vendor"], {"vendor_id": vendor})
    assert text == f"the argument vendor_id must be a string of at most {MAX_STRING} characters."


@pytest.mark.parametrize("attachments", ["D-1", "[]", [1], None, {}])
def test_attachments_are_an_array_of_strings(attachments):
    given_ = {"recipient": "a@b", "subject": "", "body": "", "attachments": attachments}
    assert problem(SPECS["send_message"], given_) == (
        "the argument attachments must be an array of strings."
    )


def test_attachments_may_be_left_out():
    assert problem(SPECS["send_message"], {"recipient": "a@b", "subject": "", "body": ""}) is None


@pytest.mark.parametrize("arguments", [None, "{}", [], 3, True])
def test_arguments_are_an_object(arguments):
    assert problem(SPECS["list_vendors"], arguments) == "the arguments must be one JSON object."


def test_missing_and_unknown_names():
    assert problem(SPECS["get_vendor"], {}) == "the argument vendor_id is missing."
    assert problem(SPECS["get_vendor"], {"vendor_id": "V-1", "evil\x1b": 1}) == (
        "unknown argument; get_vendor takes: vendor_id."
    )
    assert problem(SPECS["list_vendors"], {"x": 1}) == "unknown argument; list_vendors takes: none."


def test_a_status_is_one_of_three():
    given_ = {"vendor_id": "V-1", "status": "Eligible", "reason": "r"}
    assert problem(SPECS["set_vendor_status"], given_) == (
        "the argument status must be one of eligible, debarred, suspended."
    )
