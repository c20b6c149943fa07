import subprocess
import sys

import pytest

from impact_twin.audit.fresh import run_fresh
from impact_twin.audit.questions import RuleChoice, ask
from impact_twin.errors import ImpactTwinError, InputError


def test_an_audit_leaves_this_process_as_it_was():
    """Asking for the other rule loads v1_1_2 in a child; nothing of AgentDojo is loaded here."""
    code = (
        "import sys, yaml\n"
        "before = yaml.dump({'a': 'b'})\n"
        "from impact_twin.audit.questions import RuleChoice, ask\n"
        "from impact_twin.audit.records import parse_record\n"
        'record = parse_record(\'a\', b\'\'\'{"suite_name": "workspace", "messages": [],\n'
        '  "user_task_id": "user_task_0", "injection_task_id": "injection_task_0"}\'\'\')\n'
        "(answers,) = ask([record], [RuleChoice('v1.1.2', rebuilt=True)])\n"
        "assert answers[0].verdict is False and answers[0].left_out\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'agentdojo']\n"
        "assert yaml.dump({'a': 'b'}) == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_a_child_that_fails_is_one_clear_error():
    with pytest.raises(ImpactTwinError, match="KeyError: 'no such job'"):
        run_fresh({"job": "no such job"})


def test_an_unknown_version_names_those_that_there_are(record_of):
    with pytest.raises(InputError, match=r"no benchmark version 'v9'.*v1, v1\.1, "):
        ask([record_of([])], [RuleChoice("v9")])


def test_no_questions_start_no_interpreter(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    assert ask([], [RuleChoice()]) == [[]]
