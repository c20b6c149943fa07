"""From a report's pair-trials to the observation table that all figures derive from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from impact_twin.procurement.model import JSON, Twin
from impact_twin.report.cases import case_view, trace_entry
from impact_twin.report.outcomes import CaseView
from impact_twin.statistics.table import CaseObservation, Observation, ObservationTable


class CaseRow(NamedTuple):
    """One case of a report with what stands around it.

    Attributes:
        pair: The pair's id.
        trial: From 1.
        twin: `clean` or `poisoned`.
        outcome: Outcome class of its pair-trial.
        case: The case as the report holds it.
        trace: The trace entry with its verdict; None when it can't be read.
    """

    pair: str
    trial: int
    twin: Twin
    outcome: str
    case: Mapping[str, JSON]
    trace: Mapping[str, JSON] | None


def iter_cases(report: Mapping[str, JSON]) -> Iterator[CaseRow]:
    """Yield every planned case of a report, the clean one of a pair-trial first."""
    twins: tuple[Twin, Twin] = ("clean", "poisoned")
    for item in report["pair_trials"]:
        for twin in twins:
            case = item[twin]
            yield CaseRow(
                pair=item["pair"],
                trial=item["trial"],
                twin=twin,
                outcome=item["outcome"],
                case=case,
                trace=trace_entry(case, report["traces"], item["pair"], twin),
            )


def observation_table(report: Mapping[str, JSON]) -> ObservationTable:
    """Return the observation table of a report, one row a planned pair-trial.

    Args:
        report: `plan`, `pair_trials` and `traces` of a report.

    Raises:
        ValueError: the pair-trials contradict the plan.
    """
    traces = report["traces"]
    # Most runs share few traces, so each is read once.
    views: dict[tuple[str, str | None, str, Twin], CaseView] = {}

    def observe(item: Mapping[str, JSON], twin: Twin) -> CaseObservation:
        case, pair = item[twin], item["pair"]
        key = (case["termination"], case["trace"], pair, twin)
        view = views.get(key)
        if view is None:
            view = views[key] = case_view(case, traces, pair, twin)
        return observe_case(view, trace=case["trace"], position=case["position"])

    rows = (
        Observation(
            pair=item["pair"],
            trial=item["trial"],
            outcome=item["outcome"],
            clean=observe(item, "clean"),
            poisoned=observe(item, "poisoned"),
        )
        for item in report["pair_trials"]
    )
    return ObservationTable.from_rows(rows, report["plan"]["pairs"])


def observe_case(view: CaseView, *, trace: str | None, position: int | None) -> CaseObservation:
    """Return what a case contributes to the table.

    Args:
        view: Its termination and verdict.
        trace: Digest of its trace, or None.
        position: Start order within the run, or None when it never started.
    """
    verdict = view.verdict
    if verdict is None:
        return CaseObservation(resolved=False, start=position)
    return CaseObservation(
        resolved=view.resolved,
        mission=verdict.mission_completed,
        violated=bool(verdict.violations),
        goal=verdict.goal_reached,
        exposed=verdict.served is not None,
        attempted=verdict.attempted,
        flagged=bool(verdict.flags),
        decision=verdict.decision,
        trace=trace,
        start=position,
    )
