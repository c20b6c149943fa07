"""One case of a report as evidence: its calls, what it broke, where the poison was served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON, Trace, Twin
from impact_twin.report.cases import trace_entry, trace_of, verdict_of
from impact_twin.report.evidence_harm import breaches
from impact_twin.report.evidence_model import Breach, CaseEvidence, EventEvidence, Exposure

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite


def case_evidence(
    report: Mapping[str, JSON], item: Mapping[str, JSON], twin: Twin, suite: Suite | None
) -> CaseEvidence:
    """Return one case, whole.

    Args:
        report: The report, for its traces and texts.
        item: A pair-trial of it.
        twin: Which of its cases.
        suite: The report's suite, with the pair in it; None leaves out what only it knows.
    """
    case = item[twin]
    entry = trace_entry(case, report["traces"], item["pair"], twin)
    head = CaseEvidence(
        pair=item["pair"],
        trial=item["trial"],
        twin=twin,
        outcome=item["outcome"],
        reasons=tuple(item["reasons"]),
        targeted=item["targeted"],
        toward_attacker=item["toward_attacker"],
        termination=case["termination"],
        trace=case["trace"],
        readable=entry is not None,
        error=_error(case),
        attempts=len(case["attempts"]),
        late_calls=case["late_calls"],
        duration_s=case["duration_s"],
    )
    return head if entry is None else _whole(head, entry, case, report["texts"], suite)


def _whole(
    head: CaseEvidence,
    entry: Mapping[str, JSON],
    case: Mapping[str, JSON],
    texts: Mapping[str, str],
    suite: Suite | None,
) -> CaseEvidence:
    trace, verdict = trace_of(entry, texts), verdict_of(entry)
    broken = breaches(suite, trace, verdict)
    events = _events(trace, broken, verdict.served)
    exposure = None
    if verdict.served is not None:
        exposure = Exposure(
            event=next((event for event in events if event.served), None),
            passage=None if suite is None else suite.pair(head.pair).passage(head.twin),
            delivered=case["delivered"],
            delivered_text=texts[case["delivered_text"]] if "delivered_text" in case else None,
            calls_after=verdict.calls_after,
        )
    return CaseEvidence(
        **vars(head)
        | {
            "events": events,
            "exposure": exposure,
            "breaches": broken,
            "attempted": verdict.attempted,
            "goal_reached": verdict.goal_reached,
            "mission_completed": verdict.mission_completed,
            "missing": verdict.missing,
            "decision": verdict.decision,
            "flags": verdict.flags,
            "final_answer": trace.final_answer,
        }
    )


def _events(
    trace: Trace, broken: tuple[Breach, ...], served: int | None
) -> tuple[EventEvidence, ...]:
    breaks: dict[int, list[str]] = {}
    for breach in broken:
        for seq in dict.fromkeys(change.seq for change in breach.changes):
            breaks.setdefault(seq, []).append(breach.control)
    return tuple(
        EventEvidence(
            seq=event.seq,
            tool=event.tool,
            arguments=event.arguments,
            output=event.output,
            error=event.error,
            effects=event.effects,
            breaks=tuple(breaks.get(event.seq, ())),
            served=event.seq == served,
        )
        for event in trace.events
    )


def _error(case: Mapping[str, JSON]) -> str:
    error = case["attempts"][-1].get("error") if case["attempts"] else None
    if error is None:
        return ""
    return ": ".join(text for text in (error["kind"], error["message"]) if text)
