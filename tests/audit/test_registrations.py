import subprocess
import sys
from pathlib import Path

import pytest

from impact_twin.audit.registrations import find_registrations, folder_version, left_out


@pytest.fixture(scope="module")
def found():
    return find_registrations()


def test_every_registration_of_the_package_names_its_suite_and_task(found):
    assert len(found) == 199
    assert {item.suite for item in found} == {"banking", "slack", "travel", "workspace"}
    assert sum(item.how.endswith("combined_task") for item in found) == 15


def test_a_decorator_without_a_version_writes_to_the_first_slot(found):
    by_label = {item.label.removeprefix("agentdojo.default_suites."): item for item in found}
    thirteen = by_label["v1_1_2.workspace.user_tasks:UserTask13"]
    assert (thirteen.plain, thirteen.slot, thirteen.folder_version) == (True, (1, 0, 0), (1, 1, 2))
    zero = by_label["v1_1_2.workspace.injection_tasks:InjectionTask0"]
    assert (zero.plain, zero.slot, zero.task) == (False, (1, 1, 2), "injection_task_0")


def test_three_plain_registrations_come_from_newer_folders(found):
    newer = [item for item in found if item.plain and item.folder_version > (1, 0, 0)]
    assert [(item.suite, item.task) for item in newer] == [
        ("workspace", "user_task_13"),
        ("workspace", "user_task_31"),
        ("workspace", "user_task_32"),
    ]


def test_reading_the_registrations_does_not_import_agentdojo():
    code = (
        "import sys\n"
        "from impact_twin.audit.registrations import find_registrations\n"
        "assert find_registrations()\n"
        "assert 'agentdojo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_module_that_is_not_loaded_is_named(found):
    modules = {item.module for item in found}
    assert left_out(found, modules) == []
    missing = "agentdojo.default_suites.v1_1_2.workspace.user_tasks"
    assert left_out(found, modules - {missing}) == [missing]


def test_a_made_package_is_read_the_same_way(tmp_path):
    folder = tmp_path / "agentdojo" / "default_suites" / "v1_3" / "shop"
    folder.mkdir(parents=True)
    (folder / "suite.py").write_text('suite = TaskSuite[Shop]("shop", Shop, [])\n')
    (folder / "tasks.py").write_text(
        "from agentdojo.default_suites.v1_3.shop.suite import suite as mine\n"
        "VERSION = (1, 3, 0)\n"
        "@mine.register_user_task\n"
        "class UserTask4: ...\n"
        "@mine.update_injection_task(VERSION, new=True)\n"
        "class InjectionTask7: ...\n"
        "@mine.something_else\n"
        "class UserTask9: ...\n"
        "combine = TaskCombinator(mine)\n"
        'combine.update_combined_task("UserTask5", 1, 2, benchmark_version=(1, 3, 0))\n'
    )
    found = find_registrations(Path(tmp_path / "agentdojo"))
    assert [(item.suite, item.task, item.slot, item.plain) for item in found] == [
        ("shop", "user_task_4", (1, 0, 0), True),
        ("shop", "injection_task_7", (1, 3, 0), False),
        ("shop", "user_task_5", (1, 3, 0), False),
    ]


@pytest.mark.parametrize(
    ("module", "version"),
    [("a.v1.b", (1, 0, 0)), ("a.v1_2.b", (1, 2, 0)), ("a.b", (1, 0, 0)), ("v1_2_2", (1, 2, 2))],
)
def test_a_folder_names_a_version(module, version):
    assert folder_version(module) == version
