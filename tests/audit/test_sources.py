import importlib
import sys
import textwrap

import pytest

from impact_twin.audit import sources as room
from impact_twin.audit.sources import Sources

HELPERS = """
    WORD = "deny"
    UNUSED = 1

    def checks(text):
        return strip(text) == WORD

    def strip(text):
        return text.strip()

    def unused():
        return 1
"""
MODEL = """
    class Inbox:
        emails: dict
        def search(self, word):
            return self.collect(word)
        def collect(self, word):
            return []
        def never_called(self):
            return 0
"""
RULES = """
    from pretend.base_tasks import BaseInjectionTask
    from pretend.helpers import checks
    from pretend.model import Inbox

    def registers(task):
        return task

    # A comment before the class.
    @registers
    class InjectionTask0(BaseInjectionTask):
        GOAL = "x"  # a comment inside
        def security(self, output, inbox: Inbox):
            return checks(output) and inbox.search("x")
"""
BASE = """
    class BaseInjectionTask:
        def security_from_traces(self):
            return None
"""


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """A package that stands for AgentDojo; returns a function that loads it with changed files."""
    monkeypatch.setattr(room, "PACKAGE", "pretend")
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {"helpers": HELPERS, "model": MODEL, "rules": RULES, "base_tasks": BASE}

    def load(**changed):
        for name in [name for name in sys.modules if name.split(".")[0] == "pretend"]:
            del sys.modules[name]
        folder = tmp_path / "pretend"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
        for name, text in {**files, **changed}.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            return importlib.import_module("pretend.rules").InjectionTask0
        finally:
            sys.dont_write_bytecode = before

    yield load
    for name in [name for name in sys.modules if name.split(".")[0] == "pretend"]:
        del sys.modules[name]


def read(rule):
    return Sources().of_rule(rule)


def test_a_rule_is_its_class_its_bases_and_what_it_calls(pretend):
    found = read(pretend())
    assert set(found.uses) == {
        "pretend.base_tasks:BaseInjectionTask",
        "pretend.helpers:WORD",
        "pretend.helpers:checks",
        "pretend.helpers:strip",
        "pretend.model:Inbox.collect",
        "pretend.model:Inbox.emails",
        "pretend.model:Inbox.search",
    }
    assert found.altered == ()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("rules", 'GOAL = "x"', 'GOAL = "y"'),
        ("rules", "a comment inside", "another comment"),
        ("helpers", "text.strip()", "text.strip().lower()"),
        ("helpers", '"deny"', '"Deny"'),
        ("model", "return []", "return [1]"),
        ("model", "emails: dict", "emails: list"),
        ("base_tasks", "return None", "return True"),
    ],
)
def test_a_change_in_any_part_changes_the_digest(pretend, name, old, new):
    files = {"rules": RULES, "helpers": HELPERS, "model": MODEL, "base_tasks": BASE}
    before = read(pretend())
    after = read(pretend(**{name: files[name].replace(old, new)}))
    assert old in files[name]
    assert after.digest != before.digest
    assert (after.own != before.own) == (name == "rules")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("rules", "A comment before", "Another comment before"),
        ("rules", "@registers", "@registers  # now and then"),
        ("rules", "return task", "return task or None"),
        ("helpers", "UNUSED = 1", "UNUSED = 2"),
        ("helpers", "def unused():\n        return 1", "def unused():\n        return 2"),
        ("model", "return 0", "return 1"),
    ],
)
def test_a_change_elsewhere_does_not(pretend, name, old, new):
    files = {"rules": RULES, "helpers": HELPERS, "model": MODEL}
    before = read(pretend())
    after = read(pretend(**{name: files[name].replace(old, new)}))
    assert old in files[name]
    assert after.digest == before.digest


def test_a_method_replaced_at_run_time_is_noticed(pretend):
    rule = pretend()
    rule.security = lambda self, output, inbox: True
    assert read(rule).altered == ("pretend.rules:InjectionTask0.security",)


def test_a_helper_replaced_at_run_time_is_noticed(pretend):
    rule = pretend()

    def checks(text):
        return True

    checks.__module__ = "pretend.helpers"
    sys.modules["pretend.rules"].checks = checks
    assert any("checks" in name for name in read(rule).altered)
