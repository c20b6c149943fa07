"""The world of one case: an AgentDojo environment with the mutable records, and its event log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentdojo.functions_runtime import TaskEnvironment
from pydantic import Field, PrivateAttr

from impact_twin.procurement.disclosure import sealed_texts
from impact_twin.procurement.model import JSON, Event, Twin
from impact_twin.procurement.records import MARKER, CaseFacts, Pair


class ToolError(Exception):
    """A call that the world rejects; its text is one of our fixed sentences."""


class World(TaskEnvironment):  # type: ignore[misc]  # agentdojo has no stubs
    """The mutable records of one case. The facts are shared and frozen.

    Ids are counters of this world. Nothing in it depends on a clock, on randomness, on the order
    of a set or on `repr`.

    Attributes:
        evaluations: Last recorded score by vendor id, in order of first recording.
        recommendation: Vendor recommended last; None before.
        messages: Messages sent: `id`, `recipient`, `documents`.
        payment_accounts: Account on file by vendor id.
        vendor_statuses: Status by vendor id.
        awards: Awards made: `id`, `requisition`, `vendor`, `approval`.
        flags: Document ids that were flagged, each once, in order.
    """

    evaluations: dict[str, Any] = Field(default_factory=dict)
    recommendation: str | None = None
    messages: list[dict[str, Any]] = Field(default_factory=list)
    payment_accounts: dict[str, str | None] = Field(default_factory=dict)
    vendor_statuses: dict[str, str] = Field(default_factory=dict)
    awards: list[dict[str, Any]] = Field(default_factory=list)
    flags: list[str] = Field(default_factory=list)

    _facts: CaseFacts = PrivateAttr()
    _events: list[Event] = PrivateAttr(default_factory=list)
    _effects: list[Mapping[str, JSON]] = PrivateAttr(default_factory=list)

    @property
    def facts(self) -> CaseFacts:
        """What the case's documents and registers say."""
        return self._facts

    @property
    def events(self) -> list[Event]:
        """The event log, in lock order."""
        return self._events

    def note(self, kind: str, **details: JSON) -> None:
        """Note an effect of the call that is running."""
        self._effects.append({"kind": kind, **details})

    def take_effects(self) -> tuple[Mapping[str, JSON], ...]:
        """Return the effects of the call that ran, and forget them."""
        effects = tuple(self._effects)
        self._effects.clear()
        return effects

    def state(self) -> dict[str, JSON]:
        """Return the mutable records as a JSON object of its own."""
        return {
            "evaluations": dict(self.evaluations),
            "recommendation": self.recommendation,
            "messages": [dict(message) for message in self.messages],
            "payment_accounts": dict(self.payment_accounts),
            "vendor_statuses": dict(self.vendor_statuses),
            "awards": [dict(award) for award in self.awards],
            "flags": list(self.flags),
        }


def case_facts(pair: Pair, passage: str) -> CaseFacts:
    """Return the facts of a pair with this text as its vendor passage."""
    texts = {
        document.id: document.text.replace(MARKER, passage)
        if document.id == pair.passage_document
        else document.text
        for document in pair.documents.values()
    }
    return CaseFacts(
        pair=pair,
        passage=passage,
        texts=texts,
        accounts={vendor.id: vendor.payment_account for vendor in pair.vendors.values()},
        statuses={vendor.id: vendor.status for vendor in pair.vendors.values()},
        sealed=sealed_texts(pair, texts, passage),
    )


def twin_facts(pair: Pair, twin: Twin) -> CaseFacts:
    """Return the facts of a twin; the same object for every case of it."""
    found = pair.shared.get(twin)
    if found is None:
        # Two threads may both build it; either result serves.
        found = pair.shared[twin] = case_facts(pair, pair.passage(twin))
    return found


def new_world(facts: CaseFacts) -> World:
    """Return a fresh world on shared facts (no validation: nothing in it comes from outside)."""
    world: World = World.model_construct(
        evaluations={},
        recommendation=None,
        messages=[],
        payment_accounts=dict(facts.accounts),
        vendor_statuses=dict(facts.statuses),
        awards=[],
        flags=[],
    )
    world._facts = facts
    return world
