"""Puts records to the scoring rules, each set of rules in a fresh interpreter of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from impact_twin.audit.fresh import run_fresh
from impact_twin.audit.records import Record
from impact_twin.errors import InputError

# Records that name no benchmark version come from before the field existed.
UNNAMED_VERSION = "v1"


@dataclass(frozen=True)
class Answer:
    """What one rule says about the state that a record's tool results show.

    Attributes:
        verdict: True when the rule says that the attack succeeded; None when it wasn't asked.
        why: Why it wasn't asked, or what it raised.
        alone: Returned objects that the rule accepts when nothing else is in their collection.
        beside: Other objects without which the rule accepts the first of `alone`.
        missing: Tool results that may have changed the state and don't show how.
        assumed: The verdict if those calls did what the loaded tool does; None without any.
        assumed_alone: Whether one of the objects so made is accepted by itself.
        rule: `module:class` of the rule asked.
        tools: Tools that the injection task's own solution calls.
        left_out: Whether that class is in a module that start-up leaves out.
    """

    verdict: bool | None
    why: str = ""
    alone: tuple[dict[str, Any], ...] = ()
    beside: tuple[dict[str, Any], ...] = ()
    missing: tuple[dict[str, Any], ...] = ()
    assumed: bool | None = None
    assumed_alone: bool = False
    rule: str = ""
    tools: tuple[str, ...] = ()
    left_out: bool = False

    @property
    def shown(self) -> bool:
        """Whether the tool results show what the attack wanted, whatever stands beside it."""
        return bool(self.verdict) or bool(self.alone)

    @property
    def possible(self) -> bool:
        """Whether it is shown, or would be if the results that show nothing were as requested."""
        return self.shown or bool(self.assumed) or self.assumed_alone


@dataclass(frozen=True)
class RuleChoice:
    """Which rules to ask.

    Attributes:
        version: Benchmark version for every record; None takes each record's own.
        rebuilt: Whether to load the modules that start-up leaves out and rebuild the lists.
    """

    version: str | None = None
    rebuilt: bool = False

    def version_of(self, record: Record) -> str:
        """Return the version under which a record is asked about."""
        return self.version or record.benchmark_version or UNNAMED_VERSION


def ask(records: Sequence[Record], choices: Sequence[RuleChoice]) -> list[list[Answer | None]]:
    """Ask each choice of rules about every record.

    Args:
        records: The records.
        choices: Sets of rules, asked side by side.

    Returns:
        For each choice, one answer a record in the same order; None for a record without an
        injection task or that could not be read.

    Raises:
        InputError: AgentDojo has no such version.
        ImpactTwinError: AgentDojo can't be loaded in the fresh interpreter.
    """
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda choice: _ask_one(records, choice), choices))


def _ask_one(records: Sequence[Record], choice: RuleChoice) -> list[Answer | None]:
    injections: dict[tuple[tuple[str, str], ...], int] = {}
    questions = []
    for index, record in enumerate(records):
        if record.injection_task is not None and not record.unreadable:
            key = tuple(sorted(record.injections.items()))
            place = injections.setdefault(key, len(injections))
            questions.append(_question(record, choice.version_of(record), index, place))
    # Runs that began with the same state follow each other: it is built once.
    questions.sort(key=lambda item: (item["injections"], item["version"], item["user_task"]))
    job = {
        "job": "judge",
        "rebuilt": choice.rebuilt,
        "version": choice.version,
        "injections": [dict(key) for key in injections],
        "questions": questions,
    }
    answers: list[Answer | None] = [None] * len(records)
    found = run_fresh(job) if questions else {"answers": []}
    if "known" in found:
        raise InputError(
            f"no benchmark version {choice.version!r}",
            mend=f"AgentDojo has {', '.join(found['known'])}.",
        )
    for question, value in zip(questions, found["answers"], strict=True):
        lists = {key: tuple(value[key]) for key in ("alone", "beside", "missing", "tools")}
        answers[question["record"]] = Answer(**{**value, **lists})
    return answers


def _question(record: Record, version: str, index: int, injections: int) -> dict[str, Any]:
    results = [
        {"result": place, "function": item.function, "args": item.args, "text": item.text}
        for place, item in enumerate(record.results)
        if item.changes_state
    ]
    return {
        "record": index,
        "injections": injections,
        "version": version,
        "suite": record.suite,
        "user_task": record.user_task,
        "injection_task": record.injection_task,
        "output": record.output,
        "calls": [[function, args] for function, args in record.calls],
        "results": results,
    }
