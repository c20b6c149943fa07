"""The job that a fresh interpreter does; started by `impact_twin.audit.fresh` and by nothing else.

`judge` asks the rules about records. `rules` describes the rules as start-up leaves them, after
importing the modules that start-up leaves out, and after rebuilding the lists too. Only here is
anything imported or reloaded that changes AgentDojo, and the process ends afterwards.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any


def main() -> int:
    """Read a job from standard input, do it, write the answer to standard output."""
    # Some rules print. Their output must not end up in our answer.
    answer_to = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = json.load(sys.stdin)
    answer = JOBS[job["job"]](job)
    with answer_to:
        json.dump(answer, answer_to, ensure_ascii=True)
    return 0


def load_left_out() -> list[str]:
    """Import the registering modules that start-up leaves out; return their names.

    They come after `load_suites`: alone, they fail in a circular import.
    """
    from agentdojo.task_suite import load_suites  # noqa: F401 - the start-up itself

    from impact_twin.audit.registrations import find_registrations, left_out

    names = left_out(find_registrations())
    for name in names:
        importlib.import_module(name)
    return names


def rebuild_lists() -> None:
    """Run the module that makes the version lists again, so that they copy what is there now."""
    from agentdojo.task_suite import load_suites

    importlib.reload(load_suites)


def _judge(job: dict[str, Any]) -> dict[str, Any]:
    from impact_twin.audit.judge import Judge

    loaded: list[str] = []
    if job["rebuilt"]:
        loaded = load_left_out()
        rebuild_lists()
    judge = Judge(loaded)
    if job["version"] is not None and job["version"] not in judge.versions():
        return {"known": judge.versions()}
    # Every question copies an environment; looking for cycles among them would take a third of
    # the time, and there are none.
    gc.disable()
    return {
        "answers": [
            judge.answer(question, job["injections"][question["injections"]])
            for question in job["questions"]
        ]
    }


def _rules(job: dict[str, Any]) -> dict[str, Any]:
    from impact_twin.audit.rules import collect_rules

    start = collect_rules()
    if not job["left_out"]:
        return {"start": start}
    loaded = load_left_out()
    imported = collect_rules()
    rebuild_lists()
    return {"loaded": loaded, "start": start, "imported": imported, "rebuilt": collect_rules()}


JOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"judge": _judge, "rules": _rules}
