"""Rung 6: every recorded tool call, carried out again on a fresh world."""

from __future__ import annotations

import json
from collections.abc import Iterator

from impact_twin.procurement.model import JSON, Event, Trace
from impact_twin.procurement.replay import replay
from impact_twin.proofrun.checks import Material, RefusedError
from impact_twin.report.cases import trace_of


def check_replay(material: Material) -> str:
    """Refuse a trace whose calls give other outputs, effects or records than it says."""
    report = material.report
    calls = 0
    for name, entry in report["traces"].items():
        recorded = trace_of(entry, report["texts"])
        calls += len(recorded.events)
        for problem in _problems(recorded, replay(material.suite, recorded)):
            raise RefusedError(f"report.traces.{name}: {problem}")
    return f"{calls} tool calls carried out again: same outputs, same events, same final state"


def _problems(recorded: Trace, replayed: Trace) -> Iterator[str]:
    for place, (event, found) in enumerate(
        zip(recorded.events, replayed.events, strict=True), start=1
    ):
        if event.output != found.output:
            yield f"call {place} returned another text than the world returns"
        if _text(_parts(event)) != _text(_parts(found)):
            for field in ("seq", "tool", "arguments", "error", "effects"):
                if _text(getattr(event, field)) != _text(getattr(found, field)):
                    yield f"call {place} has other {field} than the world gives"
    if _text(recorded.final_state) != _text(replayed.final_state):
        yield "its final state is not what its calls lead to"
    if recorded.final_answer != replayed.final_answer:
        yield "its final answer is none that the recorder keeps"


def _parts(event: Event) -> JSON:
    return [event.seq, event.tool, event.arguments, event.error, event.effects]


def _text(value: JSON) -> str:
    """One text for one JSON value; unlike ==, it tells true from 1."""
    return json.dumps(value, sort_keys=True, default=list)
