"""Migration, with a made-up version 0 that spelled two things differently."""

import json

import pytest

from impact_twin.errors import InputError
from impact_twin.report.migrate import STEPS, check_digests, migrate
from impact_twin.report.model import SCHEMA_VERSION
from impact_twin.report.schema import check_schema


def to_version_0(report):
    old = json.loads(json.dumps(report))
    old["schema_version"] = 0
    old["trials"] = old.pop("pair_trials")
    for item in old["trials"]:
        item["class"] = item.pop("outcome")
    return old


def from_version_0(report):
    rows = [
        {**{key: value for key, value in item.items() if key != "class"}, "outcome": item["class"]}
        for item in report["trials"]
    ]
    rest = {key: value for key, value in report.items() if key != "trials"}
    return {**rest, "pair_trials": rows}


def test_an_older_report_is_brought_to_the_current_schema(report):
    old = to_version_0(report)
    before = json.dumps(old)
    new = migrate(old, current=1, steps={0: from_version_0})
    check_schema(new)
    assert new == report
    assert json.dumps(old) == before


def test_steps_are_taken_one_by_one(report):
    taken = []

    def step(version):
        def take(value):
            taken.append((version, value["schema_version"]))
            return value

        return take

    old = {**report, "schema_version": 0}
    new = migrate(old, current=3, steps={0: step(0), 1: step(1), 2: step(2)})
    assert taken == [(0, 0), (1, 1), (2, 2)]
    assert new["schema_version"] == 3


def test_digests_are_checked_on_the_stored_report_before_any_step(report):
    old = to_version_0(report)
    name = next(iter(old["traces"]))
    old["traces"][name]["final_answer"] += " and so on"

    def never(value):
        raise AssertionError("a step ran")

    with pytest.raises(InputError, match=f"traces: {name} is not the digest of its trace"):
        migrate(old, current=1, steps={0: never}, where="old.json")


def test_a_changed_text_is_found(report):
    changed = json.loads(json.dumps(report))
    name = next(iter(changed["texts"]))
    changed["texts"][name] += "!"
    check_digests(report)
    with pytest.raises(InputError, match="texts:"):
        check_digests(changed)


def test_a_trace_digest_covers_no_verdict(report):
    changed = json.loads(json.dumps(report))
    for entry in changed["traces"].values():
        entry["mission_completed"] = not entry["mission_completed"]
    check_digests(changed)


@pytest.mark.parametrize(
    "value", [{}, {"texts": [], "traces": {}}, {"texts": {}, "traces": {"a": 1}}]
)
def test_digests_of_something_else(value):
    with pytest.raises(InputError):
        check_digests(value)


def test_the_current_version_needs_no_step(report):
    assert migrate(report, current=SCHEMA_VERSION) is report
    assert all(version < SCHEMA_VERSION for version in STEPS)


def test_a_newer_report_is_refused(report):
    with pytest.raises(InputError, match=r"schema_version 2; this version reads up to 1") as caught:
        migrate({**report, "schema_version": 2}, current=1, where="x.json")
    assert "newer impact-twin" in caught.value.mend


def test_a_report_that_is_too_old_is_refused(report):
    with pytest.raises(InputError, match="can no longer be read"):
        migrate({**report, "schema_version": 0}, current=1, steps={})


@pytest.mark.parametrize("version", [None, "1", 1.0, True, -1, [1]])
def test_a_version_that_is_none(report, version):
    with pytest.raises(InputError, match="no version number"):
        migrate({**report, "schema_version": version}, current=1)
