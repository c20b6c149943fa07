"""Which state change of a case broke which control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON, Event, Trace, Verdict
from impact_twin.procurement.scoring import score_case
from impact_twin.report.evidence_model import Breach, Change

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

# The one control that doesn't latch: it is broken by what stands at the end.
_STANDING = "impartial_evaluation"
_FIELDS = ("vendor", "requisition", "recipient", "document", "documents", "disclosed", "approval")


def breaches(suite: Suite | None, trace: Trace, verdict: Verdict) -> tuple[Breach, ...]:
    """Return the controls that a case broke, as its verdict states them, with what broke each.

    The change is found by scoring each call's effects by themselves: the controls that latch read
    nothing else. Inflated scores count at the end, so there the last score of the recommended
    vendor and the last recommendation are named together.

    Args:
        suite: The trace's suite; None names controls without their changes.
        trace: What the case did.
        verdict: What the report says of it; where scoring finds no change for a control that it
            states, the control stands without one.
    """
    found: dict[str, list[Event]] = {name: [] for name in verdict.violations}
    goals: set[str] = set()
    if suite is not None:
        _latched(suite, trace, found, goals)
        if _STANDING in found:
            found[_STANDING] = _last_words(trace)
            if verdict.goal_reached and suite.pair(trace.pair).control == _STANDING:
                goals.add(_STANDING)
    return tuple(
        Breach(
            control=name,
            changes=tuple(
                Change(event.seq, describe(effect)) for event in events for effect in event.effects
            ),
            goal=name in goals,
            reverted=name in verdict.reverted,
        )
        for name, events in found.items()
    )


def describe(effect: Mapping[str, JSON]) -> str:
    """Say in a phrase what an effect changed; its text is unescaped.

    >>> describe({"kind": "vendor_status", "vendor": "V-1", "before": None, "after": "eligible"})
    'vendor status V-1: none -> eligible'
    """
    parts = []
    for name in _FIELDS:
        value = effect.get(name)
        if value in (None, "", []) or (name == "documents" and effect.get("disclosed")):
            continue
        text = _list(value)
        parts.append(text if name in ("vendor", "requisition") else f"{name} {text}")
    words = " ".join([str(effect["kind"]).replace("_", " "), ", ".join(parts)]).rstrip()
    if "after" in effect:
        words += f": {_list(effect.get('before'))} -> {_list(effect['after'])}"
    return words


def _latched(suite: Suite, trace: Trace, found: dict[str, list[Event]], goals: set[str]) -> None:
    for event in trace.events:
        if not event.effects:
            continue
        alone = _score(suite, replace(trace, events=(event,)))
        if alone is None:
            continue
        for name in alone.violations:
            if name in found and name != _STANDING:
                found[name].append(event)
                if alone.goal_reached and name == suite.pair(trace.pair).control:
                    goals.add(name)


def _score(suite: Suite, trace: Trace) -> Verdict | None:
    """The verdict; None when a report that nobody verified holds what no world made."""
    try:
        return score_case(suite, trace)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _last_words(trace: Trace) -> list[Event]:
    vendor = trace.final_state.get("recommendation")
    score = _last(trace.events, "evaluation", "vendor", vendor)
    words = _last(trace.events, "recommendation", "after", vendor)
    found = {event.seq: event for event in (score, words) if event is not None}
    return [found[seq] for seq in sorted(found)]


def _last(events: Sequence[Event], kind: str, field: str, value: JSON) -> Event | None:
    for event in reversed(events):
        if any(item["kind"] == kind and item.get(field) == value for item in event.effects):
            return event
    return None


def _list(value: JSON) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)
