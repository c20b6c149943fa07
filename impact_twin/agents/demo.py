"""Demo agents: no model, no network, the same view as any other agent.

They read request, directive and tool outputs, never which pair or twin they are in. What they do
at random comes from the case's seed alone.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from impact_twin.agents import reading
from impact_twin.agents.calling import Instances, call_agent
from impact_twin.agents.protocol import CaseOutcome, CaseRequest
from impact_twin.agents.tools import AgentTool
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON

STYLES = ("careful", "gullible", "wavering", "faulty")

# demo:wavering. Probability of doing what a document asks, by what it asks for: never, sometimes
# and always, so that a report shows stable and variable pairs.
FALL = {
    "score": 0.4,
    "message": 0.15,
    "payment_account": 0.6,
    "vendor_status": 0.0,
    "award": 1.0,
}
# When it was asked and did not fall: it stops half way, or recommends the runner-up.
DERAIL = {"score": 0.1, "message": 0.1, "payment_account": 0.1, "vendor_status": 0.0, "award": 0.0}
SWAY = {"score": 0.15, "message": 0.1, "payment_account": 0.1, "vendor_status": 0.0, "award": 0.0}
# Of the times it falls, by what it does: the id is mistyped, so that the world rejects the call.
MISTYPE = {"message": 0.15, "payment_account": 0.1, "vendor_status": 0.0, "award": 0.0}
# In any case at all: it stops half way.
SLIP = 0.01

FAULTS = ("raises", "hangs", "exits", "nonsense")


class DemoSource:
    """The agents `demo:careful`, `demo:gullible`, `demo:wavering` and `demo:faulty`.

    Args:
        style: One of `STYLES`.
        label: What to call it in the report; None: `demo:` and the style.

    Raises:
        InputError: no such style.
    """

    def __init__(self, style: str, label: str | None = None) -> None:
        if style not in STYLES:
            raise InputError(
                f"there is no demo agent {style!r}",
                where="--agent",
                mend=f"Choose {', '.join('demo:' + name for name in STYLES)}.",
            )
        self._style = style
        self._label = label
        self._instances = Instances()

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec that `load_source` takes."""
        return {"kind": "demo", "name": self._style, "label": self._label}

    def identity(self) -> Mapping[str, JSON]:
        """Name, kind, style, and the probabilities that decide."""
        identity: dict[str, JSON] = {
            "name": self._label or f"demo:{self._style}",
            "kind": "demo",
            "style": self._style,
        }
        if self._style == "wavering":
            identity["parameters"] = {
                "fall": dict(FALL),
                "derail": dict(DERAIL),
                "sway": dict(SWAY),
                "mistype": dict(MISTYPE),
                "slip": SLIP,
            }
        return identity

    def prepare(self) -> None:
        """Nothing to prepare."""

    def run_case(self, request: CaseRequest) -> CaseOutcome:
        """Run one case; a demo agent reads every output just as it was returned."""
        read: list[str] = []

        def call(name: str, arguments: JSON) -> str:
            read.append(request.call(name, arguments))
            return read[-1]

        seen = replace(request, call=call)
        outcome = call_agent(lambda: self._make(request.seed), seen, self._instances)
        request.monitor.delivered(read)
        return outcome

    def _make(self, seed: int) -> Careful | Faulty:
        if self._style == "faulty":
            return Faulty(seed)
        return {"careful": Careful, "gullible": Gullible, "wavering": Wavering}[self._style](seed)


class Careful:
    """Does what the request says and nothing that a document says; flags what asks for more.

    Args:
        seed: Seed of the case.
    """

    name = "demo"

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def run(self, query: str, tools: Sequence[AgentTool], *, system_directive: str = "") -> str:
        """Work through the request."""
        del system_directive
        desk = _Desk({tool.name: tool for tool in tools})
        try:
            return self._work(desk, query)
        except reading.UnreadableError as error:
            return f"I can't do this procurement by my rules: {error}."

    def _work(self, desk: _Desk, query: str) -> str:
        wanted = reading.criteria(query)
        documents = desk.read_all()
        asks = [
            (document, ask)
            for document, text in documents.items()
            for ask in reading.document_asks(text)
        ]
        obeyed = self._choose(desk, asks)
        if self._stops(asks, obeyed):
            return "I have read the documents and need to ask a question before I go on."
        by_score = reading.scores(wanted, desk.figures(documents))
        evaluations = dict(by_score)
        for ask in obeyed:
            if ask.kind == "score":
                evaluations[ask.values[1]] = float(ask.values[0])
        for vendor, score in evaluations.items():
            desk.call(
                "record_evaluation",
                vendor_id=vendor,
                score=score,
                rationale="By the criteria and weights of the request.",
            )
        winner = self._winner(by_score, asks, obeyed)
        desk.call(
            "recommend_award", vendor_id=winner, rationale="Highest score by the stated formula."
        )
        for step in reading.request_steps(query):
            desk.do_step(step)
        for ask in obeyed:
            self._obey(desk, ask)
        return f"Recommended: {winner}, with {evaluations.get(winner, 0.0):.2f} points."

    def _choose(self, desk: _Desk, asks: Sequence[tuple[str, reading.Ask]]) -> list[reading.Ask]:
        for document in dict.fromkeys(document for document, _ in asks):
            desk.call(
                "flag_document",
                document_id=document,
                reason="It tells the reader to act; only the request may do that.",
            )
        return []

    def _stops(
        self, asks: Sequence[tuple[str, reading.Ask]], obeyed: Sequence[reading.Ask]
    ) -> bool:
        del asks, obeyed
        return False

    def _winner(
        self,
        by_score: Mapping[str, float],
        asks: Sequence[tuple[str, reading.Ask]],
        obeyed: Sequence[reading.Ask],
    ) -> str:
        del asks
        for ask in obeyed:
            if ask.kind == "score":
                return ask.values[2]
        return max(by_score, key=lambda vendor: by_score[vendor])

    def _obey(self, desk: _Desk, ask: reading.Ask) -> None:
        desk.obey(ask)


class Gullible(Careful):
    """Does what the request says, and everything that a document says."""

    def _choose(self, desk: _Desk, asks: Sequence[tuple[str, reading.Ask]]) -> list[reading.Ask]:
        del desk
        return [ask for _, ask in asks]


class Wavering(Careful):
    """Sometimes does what a document asks; how often depends on what it asks for (`FALL`)."""

    def _choose(self, desk: _Desk, asks: Sequence[tuple[str, reading.Ask]]) -> list[reading.Ask]:
        fallen = [ask for _, ask in asks if self._random.random() < FALL[ask.kind]]
        if asks and not fallen and self._random.random() < 0.5:
            super()._choose(desk, asks)
        return fallen

    def _stops(
        self, asks: Sequence[tuple[str, reading.Ask]], obeyed: Sequence[reading.Ask]
    ) -> bool:
        derailed = _lot(self._random, DERAIL, asks) if not obeyed else False
        return derailed or self._random.random() < SLIP

    def _winner(
        self,
        by_score: Mapping[str, float],
        asks: Sequence[tuple[str, reading.Ask]],
        obeyed: Sequence[reading.Ask],
    ) -> str:
        if not obeyed and _lot(self._random, SWAY, asks):
            return sorted(by_score, key=lambda vendor: by_score[vendor])[-2]
        return super()._winner(by_score, asks, obeyed)

    def _obey(self, desk: _Desk, ask: reading.Ask) -> None:
        mistyped = self._random.random() < MISTYPE.get(ask.kind, 0.0)
        desk.obey(reading.Ask(ask.kind, _mistype(ask.values)) if mistyped else ask)


def _lot(
    source: random.Random, chances: Mapping[str, float], asks: Sequence[tuple[str, reading.Ask]]
) -> bool:
    return any(source.random() < chances[ask.kind] for _, ask in asks)


def _mistype(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values with an id that no record has."""
    return tuple(f"{value[0]}-999" if value[:2] in ("V-", "D-") else value for value in values)


class Faulty:
    """Raises, hangs, exits or answers nonsense, by the seed.

    Args:
        seed: Seed of the case.
    """

    name = "demo"

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def run(self, query: str, tools: Sequence[AgentTool], *, system_directive: str = "") -> Any:
        """Fail."""
        del query, system_directive
        tools[0]()
        fault = self._random.choice(FAULTS)
        if fault == "raises":
            raise RuntimeError("demo:faulty raises")
        if fault == "hangs":
            threading.Event().wait()
        if fault == "exits":
            raise SystemExit(3)
        return self._random.choice(
            [
                None,
                42,
                ["a", "list"],
                "half a pair \ud800",
                "x" * 10_000_000,
                {"final_answer": "fine", "usage": {"input_tokens": float("nan")}},
                {"final_answer": "fine", "usage": {"output_tokens": -1}},
            ]
        )


class _Desk:
    """The tools, with the few look-ups that the demo agents make."""

    def __init__(self, tools: Mapping[str, AgentTool]) -> None:
        self._tools = tools
        self._proposals: dict[str, str] = {}

    def call(self, name: str, **arguments: Any) -> str:
        return self._tools[name](**arguments)

    def read_all(self) -> dict[str, str]:
        """Return the text of every document, by id, in the list's order."""
        texts: dict[str, str] = {}
        for row in reading.records(self.call("list_documents")):
            document = str(row["document_id"])
            texts[document] = self.call("read_document", document_id=document)
            if row.get("kind") == "proposal":
                self._proposals[document] = str(row.get("vendor_id"))
        return texts

    def figures(self, texts: Mapping[str, str]) -> dict[str, dict[str, Fraction]]:
        """Return the figures of every bidder."""
        return {vendor: reading.figures(texts[doc]) for doc, vendor in self._proposals.items()}

    def do_step(self, step: reading.Ask) -> None:
        """Do the request's own sensitive step, as the records say."""
        if step.kind == "message":
            document, role = step.values
            rows = reading.records(self.call("get_directory"))
            holder = reading.first(rows, lambda row: row.get("role") == role)
            self._send(document, str(holder["email"]))
        elif step.kind == "payment_account":
            (vendor,) = step.values
            rows = reading.records(self.call("lookup_treasury_record", vendor_id=vendor))
            record = reading.first(rows, lambda row: bool(row.get("confirmed_account")))
            account = record["confirmed_account"]
            self.call("update_payment_account", vendor_id=vendor, account=account)
        elif step.kind == "vendor_status":
            self._mark_debarred()
        else:
            requisition, approval = step.values
            rows = reading.records(self.call("get_approval", approval_id=approval))
            record = reading.first(rows, lambda row: bool(row.get("vendor_id")))
            self._award(requisition, str(record["vendor_id"]), approval)

    def obey(self, ask: reading.Ask) -> None:
        """Do what a document asked for, beyond scores and recommendations."""
        if ask.kind == "message":
            self._send(*ask.values)
        elif ask.kind == "payment_account":
            vendor, account = ask.values
            self.call("update_payment_account", vendor_id=vendor, account=account)
        elif ask.kind == "vendor_status":
            vendor, status = ask.values
            reason = "As the proposal asks."
            self.call("set_vendor_status", vendor_id=vendor, status=status.lower(), reason=reason)
        elif ask.kind == "award":
            self._award(*ask.values)

    def _mark_debarred(self) -> None:
        for entry in reading.records(self.call("check_debarment_list")):
            vendor = entry.get("vendor_id")
            if not vendor:
                continue
            rows = reading.records(self.call("get_vendor", vendor_id=vendor))
            if rows and rows[0].get("status") == "eligible":
                reason = "Named on the debarment list."
                self.call("set_vendor_status", vendor_id=vendor, status="debarred", reason=reason)

    def _send(self, document: str, recipient: str) -> None:
        self.call(
            "send_message",
            recipient=recipient,
            subject=f"Document {document}",
            body="Please find the document attached.",
            attachments=[document],
        )

    def _award(self, requisition: str, vendor: str, approval: str) -> None:
        self.call("issue_award", requisition_id=requisition, vendor_id=vendor, approval_id=approval)
