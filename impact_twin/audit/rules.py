"""The identity of every scoring rule of the AgentDojo that is loaded in this process.

`collect_rules` reads the live task tables: what a run in this process would be scored by. It
changes nothing. Ask it in a fresh interpreter (`impact_twin.audit.whatif`) to see other states.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator, Sequence
from typing import Any

from impact_twin.audit.registrations import (
    FIRST,
    Registration,
    Slot,
    find_registrations,
    left_out,
)
from impact_twin.audit.sources import RuleSource, Sources, label
from impact_twin.canonical import digest
from impact_twin.errors import InputError

KIND = "impact-twin/audit-rules"
SCHEMA_VERSION = 1


def collect_rules(versions: Sequence[str] | None = None) -> dict[str, Any]:
    """Describe the scoring rules as this process has them.

    Args:
        versions: Benchmark versions to describe; all by default.

    Returns:
        A JSON value, the form that is stored as a snapshot: `kind`, `schema_version`, `agentdojo`,
        `libraries` (versions of the other packages that rules call), `modules` (registering
        modules and whether they are loaded), `parts` (each part's digest), `sources` (rule digest
        to the names of its parts), `rules` (one entry for each version, suite and task).

    Raises:
        InputError: a version that AgentDojo doesn't have.
    """
    from agentdojo.task_suite import load_suites

    # A copy: indexing the defaultdict itself with an unknown version would add it.
    known = {version: dict(suites) for version, suites in load_suites._SUITES.items()}
    for version in versions or ():
        if version not in known:
            raise InputError(
                f"no benchmark version {version!r}",
                mend=f"AgentDojo has {', '.join(known)}.",
            )
    registrations = find_registrations()
    book = _Book(registrations, set(left_out(registrations)))
    rules = [
        entry
        for version, suites in known.items()
        if not versions or version in versions
        for suite in suites.values()
        for entry in book.entries(version, suite)
    ]
    modules = sorted({item.module for item in registrations})
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "agentdojo": importlib.metadata.version("agentdojo"),
        "python": platform.python_version(),
        "libraries": _library_versions(book.outside),
        "modules": [{"module": name, "loaded": name not in book.absent} for name in modules],
        "parts": dict(sorted(book.parts.items())),
        "sources": dict(sorted(book.made_of.items())),
        "rules": rules,
    }


def rule_identity(version: str, suite: str) -> dict[str, Any]:
    """Return the identity of the rules that score one suite in this process, for a result's row.

    Args:
        version: Benchmark version, such as "v1".
        suite: Suite name, such as "workspace".

    Returns:
        A JSON value: `agentdojo` (package version), `benchmark_version`, `suite`, `digest` (over
        all tasks, and what is patched), `tasks` (task id to the digest of its rule), `altered`
        (functions patched at run time), `left_out` (registering modules that are not loaded).

    Raises:
        InputError: AgentDojo has no such version or suite.
    """
    found = collect_rules([version])
    tasks = {item["task"]: item["digest"] for item in found["rules"] if item["suite"] == suite}
    if not tasks:
        raise InputError(f"benchmark version {version!r} has no suite {suite!r}")
    altered = {
        name for item in found["rules"] if item["suite"] == suite for name in item["altered"]
    }
    return {
        "agentdojo": found["agentdojo"],
        "benchmark_version": version,
        "suite": suite,
        "digest": digest([tasks, sorted(altered)] if altered else tasks),
        "tasks": tasks,
        "altered": sorted(altered),
        "left_out": [item["module"] for item in found["modules"] if not item["loaded"]],
    }


class _Book:
    """Collects entries, and the parts and sources that they share."""

    def __init__(self, registrations: Sequence[Registration], absent: set[str]) -> None:
        self.registrations = registrations
        self.absent = absent
        self.sources = Sources()
        self.parts: dict[str, str] = {}
        self.made_of: dict[str, list[str]] = {}
        self.outside: set[str] = set()

    def entries(self, version: str, suite: Any) -> Iterator[dict[str, Any]]:
        """Yield an entry for each task of one suite as one version has it."""
        current = {**suite.user_tasks, **suite.injection_tasks}
        for table in (suite._user_tasks, suite._injection_tasks):
            for task, slots in table.items():
                usable = [slot for slot in slots if slot <= suite.benchmark_version]
                if usable:
                    slot = max(usable)
                    entry = self._entry(suite, task, slot, type(slots[slot]))
                    stale = _stale(self.sources.of_rule(type(slots[slot])), current)
                    yield {"version": version, **entry, "stale_parts": stale}

    def _entry(self, suite: Any, task: str, slot: Slot, rule: type) -> dict[str, Any]:
        source = self.sources.of_rule(rule)
        self._keep(source)
        same_slot = [
            item
            for item in self.registrations
            if (item.suite, item.task, item.slot) == (suite.name, task, slot)
        ]
        loaded = [item for item in same_slot if item.module not in self.absent]
        mine = self._registration(rule, loaded)
        return {
            "suite": suite.name,
            "task": task,
            "module": rule.__module__,
            "name": rule.__qualname__,
            "digest": source.digest,
            "own": source.own,
            "registered": _place(mine, slot),
            "overwrote": [item.label for item in loaded if mine and item is not mine],
            "from_newer_folder": bool(mine and mine.plain and mine.folder_version > FIRST),
            "left_out": self._left_out(suite, task, slot),
            "altered": list(source.altered),
        }

    def _keep(self, source: RuleSource) -> None:
        self.outside.update(source.outside)
        names = self.made_of[source.digest] = []
        for name, value in source.uses.items():
            if name.startswith("captured "):
                # What a closure holds differs from rule to rule, so its digest goes with the name.
                names.append(f"{name} = {value}")
            else:
                names.append(name)
                self.parts[name] = value

    def _registration(self, rule: type, found: Sequence[Registration]) -> Registration | None:
        line = self.sources.line(rule)
        for item in found:
            made_here = item.module == rule.__module__ and item.name == rule.__name__
            if made_here and item.line == line:
                return item
        for item in found:
            # A combined task's class is made in AgentDojo's combinator and named by the call.
            if item.name == rule.__name__ and item.how.endswith("_combined_task"):
                return item
        return None

    def _left_out(self, suite: Any, task: str, slot: Slot) -> list[str]:
        """Registrations in modules that aren't loaded which would decide this task."""
        return [
            item.label
            for item in self.registrations
            if item.module in self.absent
            and (item.suite, item.task) == (suite.name, task)
            and slot <= item.slot <= suite.benchmark_version
        ]


def _place(mine: Registration | None, slot: Slot) -> dict[str, Any]:
    return {
        "slot": ".".join(map(str, slot)),
        "module": mine.module if mine else None,
        "line": mine.line if mine else None,
        "how": mine.how if mine else None,
    }


def _stale(source: RuleSource, current: dict[str, Any]) -> list[dict[str, Any]]:
    """Tasks that a combined task captured and that the version now has another rule for."""
    stale = []
    for task, name, rule in source.captured:
        now = type(current[task]) if task in current else None
        if now is not rule:
            stale.append({"task": task, "captured": name, "current": label(now) if now else None})
    return stale


def _library_versions(names: set[str]) -> dict[str, str]:
    def version(name: str) -> str | None:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return None

    found = {name: version(name) for name in sorted(names)}
    return {name: value for name, value in found.items() if value is not None}
