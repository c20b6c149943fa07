"""What a filter on records does to a comparison: who is removed, and what may be said before it.

A filter that wants readable evidence removes records unevenly when a defence hides evidence. Here
the removed records stay in sight: rates with and without them, the bounds that the evidence
supports with every record counted, and for each pair of configurations whether an order is
settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from impact_twin.audit.disagreements import Finding
from impact_twin.audit.orders import Case, Order, case_of, order_json, orders, supported
from impact_twin.audit.records import Record, RecordSet, from_name
from impact_twin.errors import InputError
from impact_twin.statistics.intervals import (
    identification_bounds,
    wilson,
    wilson_with_unresolved,
)

READABLE = "readable-result"
NO_ERROR = "no-error"
FILTERS = {
    READABLE: "every result of the tools that the objective's own solution calls can be read",
    NO_ERROR: "the run did not end in an error",
}


@dataclass(frozen=True)
class Selection:
    """Which records to compare; empty means all. Shell patterns (`*`, `?`) are allowed."""

    configurations: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    injection_tasks: tuple[str, ...] = ()
    user_tasks: tuple[str, ...] = ()

    def takes(self, record: Record) -> bool:
        """Whether a record is among them."""
        wanted = (
            (self.configurations, record.configuration),
            (self.suites, record.suite),
            (self.attacks, record.attack),
            (self.injection_tasks, record.injection_task),
            (self.user_tasks, record.user_task),
        )
        return all(
            not patterns or any(fnmatchcase(value or "none", pattern) for pattern in patterns)
            for patterns, value in wanted
        )


@dataclass(frozen=True)
class Count:
    """So many successes of the attack, and so many unresolved, among n records."""

    successes: int
    n: int
    unresolved: int = 0

    def as_json(self, confidence: float) -> dict[str, Any]:
        """Return the counts with their bounds and Wilson interval, both over all n."""
        k, u, n = self.successes, self.unresolved, self.n
        bounds = identification_bounds(k, u, n)
        interval = wilson_with_unresolved(k, u, n, confidence) if u else wilson(k, n, confidence)
        return {
            "successes": k,
            "unresolved": u,
            "n": n,
            "bounds": _rounded(bounds),
            "wilson": _rounded(interval),
        }


@dataclass(frozen=True)
class Row:
    """One configuration.

    Attributes:
        name: The configuration.
        labels: Saved labels of all its records; a record without a label is unresolved.
        labels_kept: The same over the records that the filter leaves.
        evidence: What the tool results show under the loaded rule, over all records.
        evidence_other: The same under the other rule, None when it wasn't asked.
        fails: Names of records that fail the filter themselves.
        removed: Labels of all records removed: True, False, None to a count.
        fails_labels: Labels of the records that fail the filter themselves.
    """

    name: str
    labels: Count
    labels_kept: Count
    evidence: Count
    evidence_other: Count | None
    fails: tuple[str, ...]
    removed: Mapping[bool | None, int]
    fails_labels: Mapping[bool | None, int]


@dataclass(frozen=True)
class Exclusions:
    """A comparison under a filter."""

    selection: Selection
    filter_name: str
    tools: tuple[str, ...]
    matched: bool
    confidence: float
    rows: tuple[Row, ...]
    orders: tuple[Order, ...]
    removed_cases: tuple[Case, ...]
    left_aside: int
    warnings: tuple[str, ...]


def chosen(found: RecordSet, selection: Selection) -> RecordSet:
    """Return the selected records.

    A file that can't be read is selected by what its name says, and then counts as unresolved;
    one whose name says nothing stays among the unreadable.

    Raises:
        InputError: no record is selected.
    """
    named = {name: from_name(name, why) for name, why in found.unreadable}
    ghosts = [record for record in named.values() if record is not None]
    records = tuple(record for record in (*found.records, *ghosts) if selection.takes(record))
    if not records:
        names = sorted({record.configuration for record in found.records})
        raise InputError(
            "no record is selected",
            mend=f"The configurations are: {', '.join(names)}." if names else "",
        )
    nameless = tuple((name, why) for name, why in found.unreadable if named[name] is None)
    return RecordSet(records, nameless, found.others, found.repeated)


def compare_under_filter(
    findings: Sequence[Finding],
    *,
    selection: Selection | None = None,
    filter_name: str = READABLE,
    tools: Sequence[str] = (),
    matched: bool = True,
    confidence: float = 0.95,
    left_aside: int = 0,
    nameless: int = 0,
) -> Exclusions:
    """Compare configurations with and without the records that fail a filter.

    Args:
        findings: The selected records, examined.
        selection: How they were selected, for the page.
        filter_name: One of `FILTERS`.
        tools: Tools whose results must be readable; those of each objective's own solution when
            empty.
        matched: Remove a failing case (user task, attack, objective) from every configuration, so
            that all are compared on the same cases.
        confidence: Of the intervals, in (0, 1).
        left_aside: How many records were read and not selected.
        nameless: How many files could not be read and belong to no known configuration.
    """
    groups: dict[str, list[Finding]] = {}
    for item in findings:
        groups.setdefault(item.record.configuration, []).append(item)
    failing = {id(item): bool(_fails(item, filter_name, tools)) for item in findings}
    removed = {case_of(item) for item in findings if failing[id(item)]} if matched else set()

    def is_removed(item: Finding) -> bool:
        return failing[id(item)] or case_of(item) in removed

    rows = tuple(
        _row(name, items, lambda item: failing[id(item)], is_removed)
        for name, items in sorted(groups.items())
    )
    return Exclusions(
        selection=selection or Selection(),
        filter_name=filter_name,
        tools=tuple(sorted(set(tools) or _solution_tools(findings))),
        matched=matched,
        confidence=confidence,
        rows=rows,
        orders=orders(groups, is_removed),
        removed_cases=tuple(sorted(removed, key=str)),
        left_aside=left_aside,
        warnings=_warnings(groups, nameless),
    )


def _fails(item: Finding, filter_name: str, tools: Sequence[str]) -> bool:
    if item.record.unreadable:
        return True
    if filter_name == NO_ERROR:
        return item.record.error is not None
    if item.loaded is None:
        return False
    needed = set(tools) or set(item.loaded.tools)
    return any(
        not needed or missing["function"] in needed or not missing["function"]
        for missing in item.loaded.missing
    )


def _solution_tools(findings: Sequence[Finding]) -> set[str]:
    return {tool for item in findings if item.loaded for tool in item.loaded.tools}


def _row(
    name: str,
    items: Sequence[Finding],
    fails: Callable[[Finding], bool],
    is_removed: Callable[[Finding], bool],
) -> Row:
    kept = [item for item in items if not is_removed(item)]
    failing = [item for item in items if fails(item)]
    asked_other = any(item.other for item in items)
    return Row(
        name=name,
        labels=_labels(items),
        labels_kept=_labels(kept),
        evidence=_evidence(items, other=False),
        evidence_other=_evidence(items, other=True) if asked_other else None,
        fails=tuple(item.record.name for item in failing),
        removed=Counter(item.record.security for item in items if is_removed(item)),
        fails_labels=Counter(item.record.security for item in failing),
    )


def _labels(items: Sequence[Finding]) -> Count:
    counts = Counter(item.record.security for item in items)
    return Count(counts[True], len(items), counts[None])


def _evidence(items: Sequence[Finding], *, other: bool) -> Count:
    seen = [supported(item, other=other) for item in items]
    return Count(seen.count(True), len(seen), seen.count(None))


def _warnings(groups: Mapping[str, Sequence[Finding]], nameless: int) -> tuple[str, ...]:
    warnings = []
    unread = sum(bool(item.record.unreadable) for items in groups.values() for item in items)
    if unread:
        warnings.append(f"{unread} files can't be read; they count as unresolved.")
    if nameless:
        warnings.append(
            f"{nameless} files can't be read and their names tell no configuration: no rate "
            "counts them."
        )
    cases = {name: {case_of(item) for item in items} for name, items in groups.items()}
    if len({frozenset(each) for each in cases.values()}) > 1:
        warnings.append(
            "The configurations don't have the same cases: their rates are not comparable. "
            "Orders use the cases that two have in common. Narrow the selection."
        )
    if any(item.record.is_dos for items in groups.values() for item in items):
        warnings.append(
            "Some records are of denial-of-service attacks, which are labelled by the user's task."
        )
    repeated = sum(len(items) - len(cases[name]) for name, items in groups.items())
    if repeated:
        warnings.append(f"{repeated} records repeat a case of the same configuration.")
    return tuple(warnings)


def as_json(found: Exclusions, source: str, agentdojo: str) -> dict[str, Any]:
    """Return a comparison as a JSON value.

    Args:
        found: What `compare_under_filter` found.
        source: Name of the folder or archive.
        agentdojo: Version of the package whose rules were asked.
    """
    return {
        "kind": "impact-twin/audit-exclusions",
        "schema_version": 1,
        "source": source,
        "agentdojo": agentdojo,
        "filter": {"name": found.filter_name, "tools": list(found.tools), "matched": found.matched},
        "selection": {key: list(value) for key, value in found.selection.__dict__.items()},
        "records": sum(row.labels.n for row in found.rows),
        "not_selected": found.left_aside,
        "confidence": found.confidence,
        "methods": {
            "wilson": "Wilson score interval; with unresolved cases [lo(k, n), hi(k + u, n)]",
            "p": "exact McNemar on common cases, least favourable completion, Holm over pairs",
        },
        "configurations": [_row_json(row, found.confidence) for row in found.rows],
        "removed_cases": [list(case) for case in found.removed_cases],
        "orders": [order_json(order, found.confidence) for order in found.orders],
        "warnings": list(found.warnings),
    }


def _row_json(row: Row, confidence: float) -> dict[str, Any]:
    other = row.evidence_other
    return {
        "configuration": row.name,
        "labels_before": row.labels.as_json(confidence),
        "labels_after": row.labels_kept.as_json(confidence),
        "removed": _labelled(row.removed),
        "fails_filter": {**_labelled(row.fails_labels), "records": list(row.fails)},
        "evidence": row.evidence.as_json(confidence),
        "evidence_other_rule": other.as_json(confidence) if other else None,
    }


def _labelled(counts: Mapping[bool | None, int]) -> dict[str, int]:
    return {
        "success": counts.get(True, 0),
        "failure": counts.get(False, 0),
        "no_label": counts.get(None, 0),
    }


def _rounded(interval: Sequence[float] | None) -> list[float] | None:
    return None if interval is None else [round(end, 12) for end in interval]
