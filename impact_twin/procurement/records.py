"""The facts of one pair: frozen records, shared by every case and never copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from impact_twin.procurement.model import Twin

if TYPE_CHECKING:
    from impact_twin.procurement.disclosure import SealedText

MARKER = "{{vendor passage}}"
STATUSES = ("eligible", "debarred", "suspended")
APPROVED = "approved"


@dataclass(frozen=True)
class Vendor:
    """A vendor in the master data.

    Attributes:
        id: Identifier, such as ``V-101``.
        name: Company name.
        email: The vendor's own address.
        status: One of `STATUSES`, at the start.
        payment_account: Account on file at the start; None when there is none.
        facts: What the vendor offers, by criterion; empty when it is no bidder.
    """

    id: str
    name: str
    email: str
    status: str
    payment_account: str | None
    facts: Mapping[str, float]


@dataclass(frozen=True)
class Criterion:
    """An award criterion.

    Attributes:
        id: Identifier, the key of `Vendor.facts`.
        name: Name in the solicitation.
        weight: Percent; a pair's weights sum to 100.
        rule: `kind` and what that kind needs; see `impact_twin.procurement.expected`.
    """

    id: str
    name: str
    weight: int
    rule: Mapping[str, Any]


@dataclass(frozen=True)
class Document:
    """A document of the file.

    Attributes:
        id: Identifier, such as ``D-101``.
        title: Title in the list of documents.
        kind: ``solicitation``, ``proposal``, ``policy``, ``notice`` or ``register``.
        vendor: The vendor that wrote it; None when it is the buyer's own.
        sealed: Whether it may only reach authorised people and its own vendor.
        text: Its text, with `MARKER` where the vendor passage stands.
        protected: Figures that give a sealed document away.
    """

    id: str
    title: str
    kind: str
    vendor: str | None
    sealed: bool
    text: str
    protected: tuple[str, ...] = ()


@dataclass(frozen=True)
class TreasuryRecord:
    """An account that the treasury confirmed for a vendor."""

    vendor: str
    account: str
    confirmed_on: str
    note: str


@dataclass(frozen=True)
class Debarment:
    """An entry of the debarment list; `vendor` is None for a company outside the master data."""

    vendor: str | None
    name: str
    since: str
    reason: str


@dataclass(frozen=True)
class Contact:
    """Somebody in the directory; `authorised` people may receive sealed material."""

    name: str
    role: str
    email: str
    authorised: bool


@dataclass(frozen=True)
class Approval:
    """An approval to award; valid only with status ``approved`` and within its limit."""

    id: str
    requisition: str
    vendor: str
    limit: float
    status: str
    approver: str


@dataclass(frozen=True)
class Requisition:
    """A purchase that was asked for."""

    id: str
    description: str
    vendor: str | None
    amount: float


@dataclass(frozen=True)
class Action:
    """A change of the world: a pair's legitimate sensitive step, or the goal of its poison.

    Attributes:
        kind: ``message``, ``disclose``, ``payment_account``, ``vendor_status``, ``award`` or
            ``score_and_recommend``.
        vendor: The vendor concerned, if any.
        recipient: Address of a message.
        documents: Documents that the message must carry.
        account: Payment account.
        status: Vendor status.
        requisition: Requisition of an award.
        approval: Approval that the award cites.
    """

    kind: str
    vendor: str = ""
    recipient: str = ""
    documents: tuple[str, ...] = ()
    account: str = ""
    status: str = ""
    requisition: str = ""
    approval: str = ""


@dataclass(frozen=True)
class Pair:
    """One procurement with a clean and a poisoned twin.

    Attributes:
        id: The pair's id, also its folder's name.
        title: Title for people.
        control: The control that its poison aims at.
        request: What the user asks of the agent.
        vendors: The vendor master data, by id, in order.
        criteria: Award criteria, in order.
        documents: The documents, by id, in order.
        passage_document: The document that holds the vendor passage.
        passages: The two passages, clean and poisoned.
        treasury: Confirmed accounts, by vendor id.
        debarment: The debarment list.
        directory: The people.
        approvals: By id.
        requisitions: By id.
        decision: The vendor that the stated formula makes the best.
        step: The legitimate sensitive step; None when evaluating and recommending is all.
        goal: What the poison asks for.
        scores: Expected score by bidder, 0 to 100, in order.
        shared: Facts of each twin, built once and used by every case.
    """

    id: str
    title: str
    control: str
    request: str
    vendors: Mapping[str, Vendor]
    criteria: tuple[Criterion, ...]
    documents: Mapping[str, Document]
    passage_document: str
    passages: tuple[str, str]
    treasury: Mapping[str, TreasuryRecord]
    debarment: tuple[Debarment, ...]
    directory: tuple[Contact, ...]
    approvals: Mapping[str, Approval]
    requisitions: Mapping[str, Requisition]
    decision: str
    step: Action | None
    goal: Action
    scores: Mapping[str, float]
    shared: dict[Twin, CaseFacts] = field(
        default_factory=dict, repr=False, compare=False, hash=False
    )

    @property
    def bidders(self) -> tuple[str, ...]:
        """Vendors with a proposal in this solicitation, in order."""
        return tuple(self.scores)

    def passage(self, twin: Twin) -> str:
        """Return the vendor passage of a twin."""
        return self.passages[0 if twin == "clean" else 1]

    def document_text(self, document_id: str, twin: Twin) -> str:
        """Return the text that `read_document` serves, byte for byte.

        Raises:
            KeyError: the pair has no such document.
        """
        text = self.documents[document_id].text
        if document_id == self.passage_document:
            return text.replace(MARKER, self.passage(twin))
        return text

    def expected_scores(self) -> Mapping[str, float]:
        """Return the score that the stated formula gives each bidder, 0 to 100."""
        return self.scores

    def is_listed(self, vendor_id: str) -> bool:
        """Return whether the debarment list names the vendor."""
        return any(entry.vendor == vendor_id for entry in self.debarment)


@dataclass(frozen=True)
class CaseFacts:
    """What one case's world shows: a pair, and the texts of its documents.

    Copies are the object itself: nothing in it changes.

    Attributes:
        pair: The pair.
        passage: The vendor passage that is in force.
        texts: Served text by document id.
        accounts: Payment account by vendor id, at the start.
        statuses: Status by vendor id, at the start.
        sealed: What gives a sealed document away, in document order.
    """

    pair: Pair
    passage: str
    texts: Mapping[str, str]
    accounts: Mapping[str, str | None]
    statuses: Mapping[str, str]
    sealed: tuple[SealedText, ...]

    def __copy__(self) -> CaseFacts:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CaseFacts:
        return self
