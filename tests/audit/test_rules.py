import json
import subprocess
import sys
from collections import Counter

import pytest

from impact_twin.audit.rules import collect_rules, rule_identity
from impact_twin.canonical import digest
from impact_twin.errors import InputError


def rules_of(snapshot, **wanted):
    return [
        rule
        for rule in snapshot["rules"]
        if all(rule[key] == value for key, value in wanted.items())
    ]


def test_there_are_892_rules(survey):
    rules = survey["start"]["rules"]
    assert len(rules) == 892
    assert len({(rule["version"], rule["suite"], rule["task"]) for rule in rules}) == 892
    assert survey["start"]["agentdojo"] == "0.1.35"
    assert Counter(rule["version"] for rule in rules) == {
        "v1": 124,
        "v1.1": 124,
        "v1.1.1": 124,
        "v1.1.2": 124,
        "v1.2": 132,
        "v1.2.1": 132,
        "v1.2.2": 132,
    }


def test_every_rule_has_an_identity_and_a_place(survey):
    for rule in survey["start"]["rules"]:
        assert rule["digest"].startswith("sha256:")
        assert rule["digest"] in survey["start"]["sources"]
        assert rule["registered"]["module"]
        assert rule["registered"]["line"] > 0
        assert rule["altered"] == []


def test_what_a_rule_calls_in_the_package_is_part_of_it(survey):
    (rule,) = rules_of(survey["start"], version="v1", suite="workspace", task="injection_task_0")
    parts = survey["start"]["sources"][rule["digest"]]
    tools = "agentdojo.default_suites.v1.tools"
    assert f"{tools}.email_client:Inbox.search_emails" in parts
    assert f"{tools}.email_client:Inbox.from_address" in parts
    assert f"{tools}.email_client:Inbox.send_email" not in parts
    assert "agentdojo.base_tasks:BaseInjectionTask" in parts
    (user,) = rules_of(survey["start"], version="v1", suite="workspace", task="user_task_13")
    module = "agentdojo.default_suites.v1.workspace.user_tasks"
    parts = survey["start"]["sources"][user["digest"]]
    assert f"{module}:check_new_email" in parts
    assert f"{module}:WorkspaceDeepDiff" in parts


def test_the_modules_of_v1_1_2_are_not_loaded_at_start_up(survey):
    missing = [item["module"] for item in survey["start"]["modules"] if not item["loaded"]]
    assert missing == [
        "agentdojo.default_suites.v1_1_2.travel.injection_tasks",
        "agentdojo.default_suites.v1_1_2.workspace.injection_tasks",
        "agentdojo.default_suites.v1_1_2.workspace.user_tasks",
    ]
    waiting = {
        (rule["suite"], rule["task"]) for rule in survey["start"]["rules"] if rule["left_out"]
    }
    assert len(waiting) == 8
    assert ("workspace", "user_task_13") in waiting


def test_v1_2_overwrites_two_tasks_of_v1_at_start_up(survey):
    found = [rule for rule in survey["start"]["rules"] if rule["overwrote"]]
    assert Counter(rule["task"] for rule in found) == {"user_task_31": 7, "user_task_32": 7}
    for rule in found:
        assert rule["suite"] == "workspace"
        assert rule["registered"]["how"] == "register_user_task"
        assert rule["from_newer_folder"]
        assert ".v1_2.workspace." in rule["module"]
        assert ".v1.workspace." in rule["overwrote"][0]


def test_combined_tasks_name_the_stale_part_that_they_hold(survey):
    found = {}
    for rule in survey["start"]["rules"]:
        for part in rule["stale_parts"]:
            key = (rule["suite"], rule["task"], part["task"])
            found.setdefault(key, []).append(rule["version"])
    assert {key: len(versions) for key, versions in found.items()} == {
        ("workspace", "user_task_36", "user_task_31"): 7,
        ("workspace", "user_task_37", "user_task_32"): 7,
        ("slack", "user_task_17", "user_task_2"): 3,
        ("workspace", "user_task_39", "user_task_16"): 1,
    }


def test_a_combined_task_is_placed_where_it_was_combined(survey):
    (rule,) = rules_of(survey["start"], version="v1", suite="workspace", task="user_task_36")
    assert rule["registered"]["how"] == "create_combined_task"
    assert rule["registered"]["module"].endswith("v1.workspace.user_tasks")
    assert "NewCombinedTask" in rule["name"]


def test_two_combined_tasks_differ_by_what_they_hold(survey):
    combined = [
        rule["digest"]
        for rule in survey["start"]["rules"]
        if rule["version"] == "v1" and "NewCombinedTask" in rule["name"]
    ]
    assert len(combined) == 11
    assert len(set(combined)) == 11


def test_the_identity_for_a_row_is_that_of_the_live_rules(survey):
    row = rule_identity("v1", "workspace")
    expected = {
        rule["task"]: rule["digest"]
        for rule in rules_of(survey["start"], version="v1", suite="workspace")
    }
    assert row["tasks"] == expected
    assert row["digest"] == digest(expected)
    assert row["altered"] == []
    assert len(row["left_out"]) == 3
    assert rule_identity("v1.1", "workspace")["digest"] == row["digest"]
    assert rule_identity("v1.2", "workspace")["digest"] != row["digest"]


def test_an_unknown_version_or_suite_is_refused_and_not_added():
    from agentdojo.task_suite import load_suites

    with pytest.raises(InputError, match="no benchmark version 'v9'"):
        collect_rules(["v9"])
    with pytest.raises(InputError, match="has no suite 'shop'"):
        rule_identity("v1", "shop")
    assert "v9" not in load_suites._SUITES


def test_a_patched_rule_shows_in_the_identity():
    code = (
        "import json\n"
        "import agentdojo.task_suite.load_suites\n"
        "from agentdojo.default_suites.v1.workspace.injection_tasks import InjectionTask0\n"
        "InjectionTask0.security = lambda self, *states: True\n"
        "from impact_twin.audit.rules import rule_identity\n"
        "print(json.dumps(rule_identity('v1', 'workspace')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, timeout=300
    )
    altered = json.loads(done.stdout)["altered"]
    assert altered == [
        "agentdojo.default_suites.v1.workspace.injection_tasks:InjectionTask0.security"
    ]
