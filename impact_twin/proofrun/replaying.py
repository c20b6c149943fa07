"""Rung 6: every recorded tool call, carried out again on a fresh world."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

from impact_twin.procurement.arguments import plain_arguments, plain_name
from impact_twin.procurement.model import JSON, Event, Trace
from impact_twin.procurement.runtime import carry_out
from impact_twin.procurement.suite import Suite
from impact_twin.procurement.world import new_world, twin_facts
from impact_twin.proofrun.checks import Material, RefusedError
from impact_twin.report.cases import trace_of


def check_replay(material: Material) -> str:
    """Refuse a trace whose calls give other outputs, effects or records than it says."""
    report = material.report
    calls, characters = 0, material.max_message_characters
    for name, entry in report["traces"].items():
        recorded = trace_of(entry, report["texts"])
        # The world reads messages word by word, at a thousandth of the speed of other texts.
        for text in _message_texts(recorded):
            characters -= len(text if text.isascii() else unicodedata.normalize("NFKC", text))
            if characters < 0:
                raise RefusedError(
                    f"its messages hold more than {material.max_message_characters} characters "
                    "(--max-bytes allows for more)"
                )
        calls += len(recorded.events)
        for problem in _problems(material.suite, recorded):
            raise RefusedError(f"report.traces.{name}: {problem}")
    return f"{calls} tool calls carried out again: same outputs, same events, same final state"


def _problems(suite: Suite, recorded: Trace) -> Iterator[str]:
    world = new_world(twin_facts(suite.pair(recorded.pair), recorded.twin))
    for place, event in enumerate(recorded.events, start=1):
        found = carry_out(world, plain_name(event.tool), plain_arguments(event.arguments))
        if event.output != found.output:
            yield f"call {place} returned another text than the world returns"
        if _text(_parts(event)) != _text(_parts(found)):
            for field in ("seq", "tool", "arguments", "error", "effects"):
                if _text(getattr(event, field)) != _text(getattr(found, field)):
                    yield f"call {place} has other {field} than the world gives"
    if _text(recorded.final_state) != _text(world.state()):
        yield "its final state is not what its calls lead to"


def _parts(event: Event) -> JSON:
    return [event.seq, event.tool, event.arguments, event.error, event.effects]


def _text(value: JSON) -> str:
    """One text for one JSON value; unlike ==, it tells true from 1."""
    return json.dumps(value, sort_keys=True, default=list)


def _message_texts(trace: Trace) -> Iterator[str]:
    for event in trace.events:
        if event.tool == "send_message" and isinstance(event.arguments, dict):
            yield from (text for text in event.arguments.values() if isinstance(text, str))
