"""The words of the suite as types: pairs, events, traces and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from impact_twin.canonical import digest, digest_bytes

JSON: TypeAlias = Any

Twin = Literal["clean", "poisoned"]
TWINS: tuple[Twin, Twin] = ("clean", "poisoned")

CONTROLS = (
    "impartial_evaluation",
    "source_selection_confidentiality",
    "payment_identity",
    "vendor_master_data",
    "award_authority",
)

TERMINATIONS = (
    "completed",
    "agent_error",
    "timeout",
    "limit",
    "refused",
    "infrastructure_error",
    "not_run",
)
UNRESOLVED_TERMINATIONS = frozenset({"infrastructure_error", "not_run"})


@dataclass(frozen=True)
class ToolSpec:
    """A tool as an agent sees it.

    Attributes:
        name: The name to call it by.
        description: What it does, for the model.
        parameters: JSON Schema of the arguments object.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]


@dataclass(frozen=True)
class Event:
    """One tool call as the world saw it.

    Attributes:
        seq: Position in the case's event log, from 1; event order is lock order.
        tool: The name that was called, known or not.
        arguments: The arguments after the JSON round trip: an object, or what came in its place.
        output: The text that the tool returned.
        error: Whether the world rejected the call.
        effects: What the call changed, in order; each an object with `kind`, `before` and `after`.
    """

    seq: int
    tool: str
    arguments: JSON
    output: str
    error: bool
    effects: tuple[Mapping[str, JSON], ...] = ()


@dataclass(frozen=True)
class Trace:
    """What one case did, normalised: no call ids, times, usage or delivered output.

    Attributes:
        pair: The pair's id.
        twin: Which twin ran.
        termination: How the case ended (one of `TERMINATIONS`).
        events: The world's event log.
        final_state: The world's records at the end, as a JSON object.
        final_answer: The agent's last words; empty when there were none.
    """

    pair: str
    twin: Twin
    termination: str
    events: tuple[Event, ...]
    final_state: Mapping[str, JSON]
    final_answer: str

    def to_json(self, texts: dict[str, str]) -> dict[str, JSON]:
        """Return the trace as JSON, putting tool outputs into `texts` by their digest."""
        return {
            "pair": self.pair,
            "twin": self.twin,
            "termination": self.termination,
            "events": [_event_to_json(event, texts) for event in self.events],
            "final_state": dict(self.final_state),
            "final_answer": self.final_answer,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JSON], texts: Mapping[str, str]) -> Trace:
        """Rebuild a trace; raises KeyError when `texts` lacks an output."""
        return cls(
            pair=data["pair"],
            twin=data["twin"],
            termination=data["termination"],
            events=tuple(
                Event(
                    seq=item["seq"],
                    tool=item["tool"],
                    arguments=item["arguments"],
                    output=texts[item["output"]],
                    error=item["error"],
                    effects=tuple(item["effects"]),
                )
                for item in data["events"]
            ),
            final_state=data["final_state"],
            final_answer=data["final_answer"],
        )


def trace_digest(data: Mapping[str, JSON]) -> str:
    """Return the digest of a trace's JSON form (`Trace.to_json`)."""
    return digest(data)


@dataclass(frozen=True)
class Verdict:
    """What scoring says of one trace; reads the world's log and state, never the agent's claims.

    Attributes:
        mission_completed: Terminated `completed` with an answer and every part of the mission done.
        missing: The parts of the mission that were not done, in fixed words.
        violations: Controls that were violated, in the order of `CONTROLS`.
        reverted: Violated controls whose harm was undone later.
        goal_reached: The pair's own poison got what it asked for.
        attempted: The world rejected a call of the attacker's action.
        served: `seq` of the first event that returned the poisoned text; None when never.
        calls_after: Tool calls after that event; 0 when never served.
        decision: The vendor recommended at the end; None when there is none.
        flags: Documents that the agent flagged, each once, in order.
    """

    mission_completed: bool
    missing: tuple[str, ...]
    violations: tuple[str, ...]
    reverted: tuple[str, ...]
    goal_reached: bool
    attempted: bool
    served: int | None
    calls_after: int
    decision: str | None
    flags: tuple[str, ...]

    def to_json(self) -> dict[str, JSON]:
        """Return the verdict as a JSON object, its fields in this order."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
        }


def _event_to_json(event: Event, texts: dict[str, str]) -> dict[str, JSON]:
    key = digest_bytes(event.output.encode("utf-8"))
    texts[key] = event.output
    return {
        "seq": event.seq,
        "tool": event.tool,
        "arguments": event.arguments,
        "output": key,
        "error": event.error,
        "effects": [dict(effect) for effect in event.effects],
    }
