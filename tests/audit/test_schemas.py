"""The audit's outputs are what its schemas say, and the schemas are strict."""

import json

import jsonschema
import pytest

from impact_twin.audit import disagreements, exclusions, rules_page
from impact_twin.audit.snapshot import compare, only
from impact_twin.resources import data_folder

NAMES = ("audit-rules", "audit-rules-report", "audit-records", "audit-exclusions")


def validator(name):
    path = data_folder("schemas") / "1" / f"{name}.schema.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def assert_valid(name, value):
    validator(name).validate(json.loads(json.dumps(value)))
    with pytest.raises(jsonschema.ValidationError):
        validator(name).validate({**value, "more": 1})


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(validator(name).schema)


def test_snapshots_and_their_report(survey):
    described = only(survey["rebuilt"], [])
    assert_valid("audit-rules", described)
    found = {name: compare(survey["start"], survey[name]) for name in ("imported", "rebuilt")}
    against = ("s.json", found["rebuilt"])
    report = rules_page.rules_report(survey, found, described, "rebuilt", against)
    assert_valid("audit-rules-report", report)


def test_records(examined):
    assert_valid("audit-records", disagreements.as_json(examined, "here", "0.1.35"))


def test_exclusions(examined):
    found = exclusions.compare_under_filter(examined.findings)
    assert_valid("audit-exclusions", exclusions.as_json(found, "here", "0.1.35"))
