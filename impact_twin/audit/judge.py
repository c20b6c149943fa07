"""Asks an AgentDojo scoring rule about the state that a record's tool results show.

Runs in the fresh interpreter (`impact_twin.audit.worker`). Requests and answers are JSON values.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from impact_twin.audit.copies import Frozen, shareable
from impact_twin.audit.sources import Sources
from impact_twin.audit.world import SUITES, Shown, StartingStates, apply_results, touched_parts


class RuleRaisedError(Exception):
    """The rule itself raised; the name of its error is the argument."""


@dataclass(frozen=True)
class _Case:
    """All that one question needs: the rule, the answer's text, the calls and the first state."""

    task: Any
    output: str
    calls: Sequence[Any]
    before: Frozen

    def accepts(self, after: Any) -> bool:
        """Ask the rule, as `TaskSuite` asks it: from the calls first, else from the states."""
        before = self.before.thaw()
        try:
            verdict = self.task.security_from_traces(self.output, before, after, self.calls)
            if verdict is None:
                verdict = self.task.security(self.output, before, after)
        except Exception as err:
            raise RuleRaisedError(type(err).__name__) from None
        return bool(verdict)


class Judge:
    """Answers questions about records under the rules of this interpreter."""

    def __init__(self, left_out: Collection[str] = ()) -> None:
        """Take the task tables as they are.

        Args:
            left_out: Names of modules that were imported although start-up leaves them out.
        """
        from agentdojo.task_suite import load_suites

        # Never index it: it is a defaultdict, and asking for a version would add one.
        self._suites = {version: dict(suites) for version, suites in load_suites._SUITES.items()}
        self._states: dict[tuple[str, str], StartingStates] = {}
        self._left_out = frozenset(left_out)
        self._sources = Sources()
        self._last: tuple[Any, Frozen | None] = (None, None)
        self._solutions: dict[tuple[str, str, str], list[str]] = {}

    def versions(self) -> list[str]:
        """Return the benchmark versions that there are."""
        return list(self._suites)

    def answer(self, question: Mapping[str, Any], injections: Mapping[str, str]) -> dict[str, Any]:
        """Return what the rule says about one record.

        Args:
            question: `version`, `suite`, `user_task`, `injection_task`, `output`, `calls`
                ([function, args] pairs), `results` (mappings, see `apply_results`).
            injections: The record's injections.

        Returns:
            `verdict` (True, False or None), `why` (why there is none), `alone` (objects that the
            rule accepts by themselves), `beside` (what else it then refuses), `missing`,
            `assumed` (the verdict if the calls without a visible result did what the tool does),
            `assumed_alone`, `rule` (which class was asked), `tools` (of the task's own solution),
            `left_out` (whether the class is in a module that start-up leaves out).
        """
        version, suite_name = question["version"], question["suite"]
        suite = self._suites.get(version, {}).get(suite_name)
        if suite is None:
            return _none("no such suite in this version")
        if suite_name not in SUITES:
            return _none("states of this suite are not rebuilt")
        task = suite.injection_tasks.get(question["injection_task"])
        user_task = suite.user_tasks.get(question["user_task"])
        if task is None or user_task is None:
            return _none("no such task in this version")
        try:
            before = self._before(version, suite, user_task, type(task), injections)
        except ValueError:
            return _none("the starting state can't be built")
        case = _Case(task, question["output"], _calls(question["calls"]), before)
        about = {
            "rule": f"{type(task).__module__}:{type(task).__qualname__}",
            "tools": self._tools(version, suite.name, task, before),
            "left_out": type(task).__module__ in self._left_out,
        }
        try:
            return {**_about(case, question["results"], suite), **about}
        except RuleRaisedError as err:
            return {**_none(f"the rule raised {err.args[0]}"), **about}

    def _tools(self, version: str, suite: str, task: Any, before: Frozen) -> list[str]:
        """Return the tools that a task's own solution calls; empty when it gives none."""
        key = (version, suite, task.ID)
        if key not in self._solutions:
            try:
                calls = task.ground_truth(before.thaw(before.shared))
                self._solutions[key] = sorted({str(call.function) for call in calls})
            except Exception:
                # The solution isn't needed to score, and some tasks have none.
                self._solutions[key] = []
        return self._solutions[key]

    def _before(
        self,
        version: str,
        suite: Any,
        user_task: Any,
        rule: type,
        injections: Mapping[str, str],
    ) -> Frozen:
        """Return the state that the run began with; questions come sorted by it."""
        from agentdojo.base_tasks import BaseUserTask

        # Most user tasks leave the state as it is; then what matters is the injections alone.
        same = type(user_task).init_environment is BaseUserTask.init_environment
        key = (version, suite.name, None if same else user_task, rule, injections)
        known, frozen = self._last
        if frozen is None or known != key:
            if (version, suite.name) not in self._states:
                self._states[version, suite.name] = StartingStates(suite)
            start = self._states[version, suite.name].build(injections)
            shared = shareable(suite.environment_type, self._sources.of_rule(rule).names)
            frozen = Frozen(user_task.init_environment(start), shared)
            self._last = (key, frozen)
        return frozen


def _about(case: _Case, results: Sequence[Mapping[str, Any]], suite: Any) -> dict[str, Any]:
    after = case.before.thaw(touched_parts(results))
    shown, missing = apply_results(after, results)
    placed = _placed(case, after, shown)
    frozen = Frozen(after, case.before.shared) if placed else None
    answer = _none("")
    answer["verdict"] = case.accepts(after)
    if frozen and not answer["verdict"]:
        alone = list(_accepted_alone(case, frozen, placed))
        answer["alone"] = [_named(item) for item, _ in alone]
        if alone:
            answer["beside"] = _in_the_way(case, frozen, *alone[0], shown)
    if missing:
        answer["missing"] = [
            {"result": item.result, "function": item.function, "why": item.why} for item in missing
        ]
        assumed, seen = _assume(case, results, suite)
        placed = _placed(case, assumed, seen)
        frozen = Frozen(assumed, case.before.shared)
        answer["assumed"] = case.accepts(assumed)
        answer["assumed_alone"] = any(True for _ in _accepted_alone(case, frozen, placed))
    return answer


def _assume(
    case: _Case, results: Sequence[Mapping[str, Any]], suite: Any
) -> tuple[Any, list[Shown]]:
    """Rebuild again, and run the loaded tool wherever the saved result shows nothing."""
    from agentdojo.functions_runtime import FunctionsRuntime

    environment = case.before.thaw(case.before.shared)
    runtime = FunctionsRuntime(suite.tools)

    def replay(function: str, args: Mapping[str, Any]) -> Any:
        try:
            return runtime.run_function(environment, function, copy.deepcopy(args))[0]
        except Exception:
            # Hostile arguments: the call then did nothing that we can assume.
            return None

    shown, _ = apply_results(environment, results, replay)
    return environment, shown


def _accepted_alone(
    case: _Case, frozen: Frozen, placed: Iterable[tuple[Shown, str]]
) -> Iterable[tuple[Shown, str]]:
    """Yield the objects that the rule accepts when their collection holds nothing else."""
    for item, place in placed:
        after = frozen.thaw()
        _keep_only(after, item, place, {item.key})
        if case.accepts(after):
            yield item, place


def _collections(item: Shown) -> tuple[str, ...]:
    return ("emails", "trash") if item.part == "inbox" else (item.collection,)


def _placed(case: _Case, after: Any, shown: Iterable[Shown]) -> list[tuple[Shown, str]]:
    """Return the objects that the rule can see, and where each stands at the end."""
    return [
        (item, place)
        for item in dict.fromkeys(shown)
        if item.part not in case.before.shared
        for place in _collections(item)
        if item.key in getattr(getattr(after, item.part), place)
    ]


def _keep_only(after: Any, item: Shown, place: str, keys: set[str]) -> None:
    """Empty the collections of an object's part but for `keys` in `place`."""
    holder = getattr(after, item.part)
    for name in _collections(item):
        held = getattr(holder, name)
        setattr(holder, name, {key: held[key] for key in held if name == place and key in keys})


def _in_the_way(
    case: _Case, frozen: Frozen, item: Shown, place: str, shown: Sequence[Shown]
) -> list[dict[str, Any]]:
    """Name the fewest other objects without which the rule accepts: put each back and see."""
    returned = {other.key for other in shown if other.part == item.part}
    kept = {item.key}
    removed = []
    for key in getattr(getattr(frozen.thaw(), item.part), place):
        if key == item.key:
            continue
        after = frozen.thaw()
        _keep_only(after, item, place, kept | {key})
        if case.accepts(after):
            kept.add(key)
        else:
            origin = "a tool result" if key in returned else "the starting state"
            removed.append({"id": key, "from": origin})
    return removed


def _named(item: Shown) -> dict[str, Any]:
    return {"result": item.result, "function": item.function, "id": item.key}


def _calls(pairs: Sequence[Sequence[Any]]) -> list[Any]:
    from agentdojo.functions_runtime import FunctionCall

    def made(function: str, args: Any) -> Any:
        try:
            return FunctionCall(function=function, args=args)
        except ValueError:
            return None

    return [call for pair in pairs if (call := made(*pair)) is not None]


def _none(why: str) -> dict[str, Any]:
    return {
        "verdict": None,
        "why": why,
        "alone": [],
        "beside": [],
        "missing": [],
        "assumed": None,
        "assumed_alone": False,
        "rule": "",
        "tools": [],
        "left_out": False,
    }
