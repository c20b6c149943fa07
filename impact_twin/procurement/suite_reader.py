"""From a suite's checked JSON and texts to a `Pair`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from impact_twin.errors import InputError
from impact_twin.procurement.expected import expected_scores
from impact_twin.procurement.model import JSON
from impact_twin.procurement.records import (
    Action,
    Approval,
    Contact,
    Criterion,
    Debarment,
    Document,
    Pair,
    Requisition,
    TreasuryRecord,
    Vendor,
)
from impact_twin.procurement.suite_files import SuiteFolder


def read_pair(folder: SuiteFolder, name: str, data: Mapping[str, JSON]) -> Pair:
    """Build a pair from its folder.

    Args:
        folder: The suite's folder.
        name: The pair's folder in it.
        data: The content of its pair.json, already checked by the schema.

    Raises:
        InputError: a file is missing or refused, an id occurs twice, or scores can't be computed.
    """
    where = folder.where(f"{name}/pair.json")
    vendors = [_vendor(item) for item in data["vendors"]]
    criteria = tuple(
        Criterion(item["id"], item["name"], item["weight"], item["rule"])
        for item in data["criteria"]
    )
    documents = [_document(folder, name, item) for item in data["documents"]]
    return Pair(
        id=data["id"],
        title=data["title"],
        control=data["control"],
        request=folder.text(f"{name}/request.md"),
        vendors=_by_id(vendors, where, "vendors"),
        criteria=criteria,
        documents=_by_id(documents, where, "documents"),
        passage_document=data["passage"]["document"],
        passages=(
            _passage(folder, f"{name}/passage.clean.md"),
            _passage(folder, f"{name}/passage.poisoned.md"),
        ),
        treasury=_unique(
            [(item["vendor"], TreasuryRecord(**item)) for item in data["treasury"]],
            where,
            "treasury",
        ),
        debarment=tuple(Debarment(**item) for item in data["debarment"]),
        directory=tuple(Contact(**item) for item in data["directory"]),
        approvals=_by_id([Approval(**item) for item in data["approvals"]], where, "approvals"),
        requisitions=_by_id(
            [Requisition(**item) for item in data["requisitions"]], where, "requisitions"
        ),
        decision=data["expected"]["decision"],
        step=None if data["mission_step"] is None else _action(data["mission_step"]),
        goal=_action(data["goal"]),
        scores=_scores(criteria, vendors, where),
    )


def _vendor(item: Mapping[str, Any]) -> Vendor:
    return Vendor(
        id=item["id"],
        name=item["name"],
        email=item["email"],
        status=item["status"],
        payment_account=item["payment_account"],
        facts=dict(item.get("facts", {})),
    )


def _document(folder: SuiteFolder, name: str, item: Mapping[str, Any]) -> Document:
    return Document(
        id=item["id"],
        title=item["title"],
        kind=item["kind"],
        vendor=item["vendor"],
        sealed=item["sealed"],
        text=folder.text(f"{name}/{item['file']}"),
        protected=tuple(item.get("protected", ())),
    )


def _passage(folder: SuiteFolder, name: str) -> str:
    """Return a passage without the line end that closes its file."""
    text = folder.text(name)
    return text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith("\n") else text


def _action(item: Mapping[str, Any]) -> Action:
    documents = [item["document"]] if "document" in item else item.get("documents", [])
    return Action(
        kind=item["kind"],
        vendor=item.get("vendor", ""),
        recipient=item.get("recipient", ""),
        documents=tuple(documents),
        account=item.get("account", ""),
        status=item.get("status", ""),
        requisition=item.get("requisition", ""),
        approval=item.get("approval", ""),
    )


def _scores(criteria: tuple[Criterion, ...], vendors: list[Vendor], where: str) -> dict[str, float]:
    """Return the bidders' scores; a vendor with facts is a bidder."""
    wanted = {criterion.id for criterion in criteria}
    bidders = {vendor.id: vendor.facts for vendor in vendors if vendor.facts}
    if len(bidders) < 2:
        raise InputError("fewer than two vendors have facts", where=f"{where}: vendors")
    for vendor, facts in bidders.items():
        if set(facts) != wanted:
            raise InputError(
                f"the facts of {vendor} must name exactly the criteria "
                + ", ".join(item.id for item in criteria),
                where=f"{where}: vendors",
            )
    for criterion in criteria:
        values = [facts[criterion.id] for facts in bidders.values()]
        if criterion.rule["kind"] != "bands" and min(values) <= 0:
            raise InputError(
                f"a ratio needs values above 0 for the criterion {criterion.id}",
                where=f"{where}: vendors",
            )
    return expected_scores(criteria, bidders)


def _by_id(items: list[Any], where: str, name: str) -> dict[str, Any]:
    return _unique([(item.id, item) for item in items], where, name)


def _unique(items: list[tuple[str, Any]], where: str, name: str) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        keys = [key for key, _ in items]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the id {twice} occurs twice", where=f"{where}: {name}")
    return found
