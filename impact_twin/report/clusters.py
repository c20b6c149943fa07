"""Trials of a pair by what they did: one cluster for each trace and class."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from impact_twin.procurement.model import JSON, Twin
from impact_twin.report.cases import trace_entry
from impact_twin.report.evidence_events import entry_deeds
from impact_twin.report.evidence_model import Cluster


class Clusters(NamedTuple):
    """The clusters of a pair's trials.

    Attributes:
        clusters: The most frequent first, then by first trial.
        deeds: The deed keys of each trace that can be read, by digest.
        courses: Number of different courses of action: traces without their free text.
    """

    clusters: tuple[Cluster, ...]
    deeds: Mapping[str, tuple[Hashable, ...]]
    courses: int


def cluster_trials(
    items: Sequence[Mapping[str, JSON]], twin: Twin, traces: Mapping[str, Mapping[str, JSON]]
) -> Clusters:
    """Cluster pair-trials of one pair by the trace of one twin, and by outcome class.

    Two trials may share a trace and differ in class, when the class hinges on the other twin: they
    are two clusters.

    Args:
        items: Pair-trials of the report.
        twin: Whose traces.
        traces: The report's traces.
    """
    found: dict[tuple[str | None, str], list[int]] = {}
    entries: dict[str, Mapping[str, JSON]] = {}
    for item in items:
        trace = item[twin]["trace"]
        entry = trace_entry(item[twin], traces, item["pair"], twin)
        if entry is not None:
            entries[trace] = entry
        found.setdefault((trace, item["outcome"]), []).append(item["trial"])
    deeds = {trace: entry_deeds(entry) for trace, entry in entries.items()}
    ordered = sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[1][0]))
    courses = _courses(ordered, deeds)
    return Clusters(
        clusters=tuple(
            _cluster(trace, outcome, trials, entries, courses)
            for (trace, outcome), trials in ordered
        ),
        deeds=deeds,
        courses=len(set(courses.values())),
    )


def _cluster(
    trace: str | None,
    outcome: str,
    trials: Sequence[int],
    entries: Mapping[str, Mapping[str, JSON]],
    courses: Mapping[str, int],
) -> Cluster:
    entry = None if trace is None else entries.get(trace)
    return Cluster(
        trace=trace,
        outcome=outcome,
        trials=tuple(trials),
        course=0 if entry is None or trace is None else courses[trace],
        events=0 if entry is None else len(entry["events"]),
        decision=None if entry is None else entry["decision"],
        violations=() if entry is None else tuple(entry["violations"]),
    )


def _courses(
    ordered: Sequence[tuple[tuple[str | None, str], list[int]]],
    deeds: Mapping[str, tuple[Hashable, ...]],
) -> dict[str, int]:
    """Number the courses of action in the order in which the clusters show them."""
    numbers: dict[tuple[Hashable, ...], int] = {}
    found = {}
    for (trace, _), _ in ordered:
        if trace is not None and trace in deeds:
            found[trace] = numbers.setdefault(deeds[trace], len(numbers) + 1)
    return found
