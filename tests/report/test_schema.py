import json

import pytest

from impact_twin.errors import InputError
from impact_twin.report.outcomes import REASONS
from impact_twin.report.schema import check_references, check_schema
from impact_twin.resources import data_folder


def changed(report, change):
    copied = json.loads(json.dumps(report))
    change(copied)
    return copied


def test_the_schema_lists_every_reason():
    schema = json.loads((data_folder("schemas") / "1" / "report.schema.json").read_text())
    assert set(schema["$defs"]["reason"]["enum"]) == REASONS


def test_a_broken_schema_names_file_and_field(report):
    broken = changed(report, lambda value: value["plan"].update(trials="6"))
    with pytest.raises(InputError, match=r'^mine\.json: plan\.trials breaks .*"6"') as caught:
        check_schema(broken, where="mine.json")
    assert caught.value.mend


def test_what_a_broken_field_holds_is_escaped(report):
    broken = changed(report, lambda value: value["identity"].update({"\x1b[31m": "\u202e"}))
    with pytest.raises(InputError) as caught:
        check_schema(broken)
    assert "\x1b" not in caught.value.line()
    assert "\u202e" not in caught.value.line()


@pytest.mark.parametrize("value", [None, [], "report", 3, {}])
def test_other_json_is_refused(value):
    with pytest.raises(InputError):
        check_schema(value)


def drop_last(report):
    report["pair_trials"].pop()


def swap(report):
    rows = report["pair_trials"]
    rows[0], rows[1] = rows[1], rows[0]


def repeat(report):
    report["pair_trials"][1] = report["pair_trials"][0]


def more_trials(report):
    report["plan"]["trials"] += 1


def other_pairs(report):
    report["summary"]["pairs"].reverse()


@pytest.mark.parametrize("change", [drop_last, swap, repeat, more_trials, other_pairs])
def test_the_planned_pair_trials_must_be_there(report, change):
    with pytest.raises(InputError, match="planned"):
        check_references(changed(report, change))


def test_texts_must_be_there(report):
    broken = changed(report, lambda value: value["texts"].clear())
    with pytest.raises(InputError, match="not in texts"):
        check_references(broken)


@pytest.mark.parametrize("field", ["delivered_text", "detail"])
def test_a_cases_texts_must_be_there(report, field):
    def change(value):
        value["pair_trials"][0]["poisoned"][field] = "sha256:" + "0" * 64

    with pytest.raises(InputError, match=f"the poisoned case of .*, trial 1: {field}"):
        check_references(changed(report, change))


@pytest.mark.parametrize(("termination", "trace"), [("not_run", "kept"), ("completed", None)])
def test_only_a_case_that_ran_has_a_trace(report, termination, trace):
    def change(value):
        case = value["pair_trials"][0]["clean"]
        case["termination"] = termination
        case["trace"] = case["trace"] if trace else None

    with pytest.raises(InputError, match="unless it was not run"):
        check_references(changed(report, change))


def test_a_trace_that_is_missing_is_no_error(report):
    check_references(changed(report, lambda value: value["traces"].clear()))
