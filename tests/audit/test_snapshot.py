import copy
import json
from collections import Counter

import pytest

from impact_twin.audit.snapshot import compare, load_snapshot, only
from impact_twin.errors import InputError


def test_importing_the_left_out_modules_changes_two_rules_at_once(survey):
    found = compare(survey["start"], survey["imported"])
    assert [(item.version, item.suite, item.task) for item in found.changed] == [
        ("v1", "workspace", "user_task_13"),
        ("v1.1", "workspace", "user_task_13"),
    ]
    assert found.same == 890
    assert (found.added, found.removed) == ((), ())


def test_rebuilding_the_lists_changes_32_rules_of_8_tasks(survey):
    found = compare(survey["start"], survey["rebuilt"])
    assert len(found.changed) == 32
    assert Counter(item.version for item in found.changed) == {
        "v1": 1,
        "v1.1": 1,
        "v1.1.1": 1,
        "v1.1.2": 8,
        "v1.2": 7,
        "v1.2.1": 7,
        "v1.2.2": 7,
    }
    assert {(item.suite, item.task) for item in found.changed if item.version == "v1.1.2"} == {
        ("workspace", "user_task_33"),
        ("workspace", "user_task_13"),
        ("workspace", "injection_task_0"),
        ("workspace", "injection_task_3"),
        ("workspace", "injection_task_4"),
        ("workspace", "injection_task_5"),
        ("travel", "injection_task_3"),
        ("travel", "injection_task_5"),
    }
    everywhere = [item for item in found.changed if item.task == "user_task_13"]
    assert len(everywhere) == 7
    assert all(item.parts == ("the class",) for item in found.changed)
    assert not found.holds


def test_a_snapshot_compared_with_itself_holds(survey):
    found = compare(survey["start"], survey["start"])
    assert (found.same, found.changed, found.holds) == (892, (), True)


def test_a_changed_helper_names_itself_and_every_rule_that_calls_it(survey):
    name = "agentdojo.default_suites.v1.workspace.user_tasks:check_new_email"
    after = copy.deepcopy(survey["start"])
    users = [rule for rule in after["rules"] if name in after["sources"][rule["digest"]]]
    after["parts"][name] = "sha256:changed"
    for rule in users:
        digest = rule["digest"] + " changed"
        after["sources"][digest] = after["sources"][rule["digest"]]
        rule["digest"] = digest
    found = compare(survey["start"], after)
    assert len(found.changed) == len(users) > 7
    assert {item.parts for item in found.changed} == {(name,)}


def test_a_moved_class_and_a_missing_and_a_new_rule_are_told_apart(survey):
    before = {**survey["start"], "rules": copy.deepcopy(survey["start"]["rules"][:3])}
    after = copy.deepcopy(before)
    after["rules"][0]["module"] = "elsewhere"
    gone = after["rules"].pop(1)
    after["rules"].append({**gone, "task": "user_task_99"})
    found = compare(before, after)
    assert [(item.moved_only, item.parts) for item in found.changed] == [(True, ())]
    assert [key[2] for key in found.removed] == [gone["task"]]
    assert [key[2] for key in found.added] == ["user_task_99"]
    assert not found.holds


def test_a_stored_snapshot_is_read_back_alone_or_in_a_report(survey, tmp_path):
    small = only(survey["start"], ["v1"])
    assert len(small["rules"]) == 124
    path = tmp_path / "s.json"
    path.write_text(json.dumps(small))
    assert load_snapshot(path) == small
    path.write_text(json.dumps({"kind": "report", "snapshot": small}))
    assert load_snapshot(path) == small


def test_an_unknown_version_of_a_snapshot_is_refused(survey):
    with pytest.raises(InputError, match="no benchmark version 'v7'"):
        only(survey["start"], ["v1", "v7"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "other"}, "not a snapshot"),
        ({"schema_version": 2}, "schema version 2"),
        ({"agentdojo": 1}, "at agentdojo"),
        ({"rules": {}}, "at rules"),
        ({"rules": [{"version": "v1"}]}, r"at rules\.0"),
        ({"rules": [7]}, r"at rules\.0"),
        ({"sources": {"sha256:a": "b"}}, r"at sources\.sha256:a"),
        ({"parts": {"a": 1}}, r"at parts\.a"),
        ({"more": 1}, "at the whole"),
    ],
)
def test_a_damaged_snapshot_is_refused_with_the_reason(survey, tmp_path, change, why):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**only(survey["start"], ["v1"]), **change}))
    with pytest.raises(InputError, match=why):
        load_snapshot(path)


def test_a_rule_that_occurs_twice_is_refused(survey, tmp_path):
    rules = survey["start"]["rules"][:1] * 2
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**survey["start"], "rules": rules}))
    with pytest.raises(InputError, match="twice"):
        load_snapshot(path)
