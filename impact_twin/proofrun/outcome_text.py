"""What verifying showed, as lines for a terminal and as JSON. Text from files is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON
from impact_twin.proofrun.checks import RUNGS, Check
from impact_twin.proofrun.eligibility import Eligibility
from impact_twin.proofrun.tiers import Tier
from impact_twin.proofrun.verify import Verification
from impact_twin.report.strips import wrap
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.proofrun.attested import Attested

_LONGEST = 1_000
_COLUMN = 18


def verification_lines(
    name: str, verification: Verification, attested: Attested | None = None, *, width: int = 80
) -> Iterator[str]:
    """Yield the lines about one file.

    Args:
        name: The file's name, as given.
        verification: What verifying it showed.
        attested: What its attestations showed.
        width: Columns to keep to, >= 40.
    """
    checks = [*verification.checks, *(() if attested is None else attested.checks)]
    word = "verified" if _held(verification, attested) else "NOT VERIFIED"
    yield from wrap(f"{_safe(name)}: {word}", width)
    yield from (f"  {line}" for line in wrap(verification.digest, width - 2))
    for rung, title in RUNGS.items():
        yield from _rung_lines(
            rung, title, [check for check in checks if check.rung == rung], width
        )
    if attested is not None:
        for line in attested.result.lines():
            yield from _labelled("", line, width)
    tier = _tier(verification, attested)
    if tier is not None:
        yield from _labelled("  tier", tier.name, width)
    for line in () if attested is None else attested.missing:
        yield from _labelled("", f"no higher, since {line}", width)
    if verification.eligibility is not None:
        yield from _board_lines(verification.eligibility, width)


def tier_lines(tiers: Iterable[Tier], *, width: int = 80) -> Iterator[str]:
    """Yield what tiers mean: each tier once, each sentence once."""
    by_name: dict[str, list[Tier]] = {}
    for tier in tiers:
        by_name.setdefault(tier.name, []).append(tier)
    for name, same in by_name.items():
        yield from wrap(f"What {name} means:", width)
        for title, part in (
            ("proven", "proven"),
            ("only claimed", "claimed"),
            ("can't be known", "unknowable"),
        ):
            sentences = dict.fromkeys(text for tier in same for text in getattr(tier, part))
            for place, sentence in enumerate(sentences):
                yield from _labelled("" if place else f"  {title}", _safe(sentence), width)


def verification_json(
    name: str, verification: Verification, attested: Attested | None = None
) -> dict[str, JSON]:
    """Return what verifying one file showed, as JSON. Texts are as the file has them."""
    bundle, eligibility = verification.bundle, verification.eligibility
    tier = _tier(verification, attested)
    checks = [*verification.checks, *(() if attested is None else attested.checks)]
    return {
        "file": name,
        "verified": _held(verification, attested),
        "bundle": verification.digest,
        "bytes": verification.size,
        "checks": [
            {
                "rung": check.rung,
                "name": check.name,
                "status": check.status,
                "message": check.message[:_LONGEST],
            }
            for check in checks
        ],
        "submission": None if bundle is None else dict(bundle["submission"]),
        "tier": None if tier is None else _tier_json(tier),
        "missing": [] if attested is None else list(attested.missing),
        "eligible": None if eligibility is None else eligibility.eligible,
        "reasons": []
        if eligibility is None
        else [{"code": reason.code, "text": reason.text} for reason in eligibility.reasons],
        "attestation": None if attested is None else attested.result.to_json(),
        "plan_attestation": None
        if attested is None or attested.plan is None
        else attested.plan.to_json(),
    }


def _held(verification: Verification, attested: Attested | None) -> bool:
    return verification.valid and (attested is None or attested.held)


def _tier(verification: Verification, attested: Attested | None) -> Tier | None:
    return verification.tier if attested is None else attested.tier


def _tier_json(tier: Tier) -> dict[str, JSON]:
    return {
        "name": tier.name,
        "proven": list(tier.proven),
        "claimed": list(tier.claimed),
        "unknowable": list(tier.unknowable),
    }


def _rung_lines(rung: int, title: str, checks: Sequence[Check], width: int) -> Iterator[str]:
    label = f"  {rung} {title}"
    failed = [check for check in checks if check.status == "failed"]
    if failed:
        for check in failed:
            yield from _labelled(label, f"FAILED  {check.name}: {_safe(check.message)}", width)
    elif not checks or any(check.status == "not made" for check in checks):
        yield from _labelled(label, "not made", width)
    else:
        messages = "; ".join(_safe(check.message) for check in checks)
        yield from _labelled(label, f"held  {messages}", width)


def _board_lines(eligibility: Eligibility, width: int) -> Iterator[str]:
    if eligibility.eligible:
        yield from _labelled("  board", "eligible", width)
    for place, reason in enumerate(eligibility.reasons):
        text = f"not eligible: {_safe(reason.text)}"
        yield from _labelled("" if place else "  board", text, width)


def _labelled(label: str, text: str, width: int) -> Iterator[str]:
    for line in wrap(text, width - _COLUMN):
        yield f"{label:<{_COLUMN}}{line}".rstrip()
        label = ""


def _safe(text: str) -> str:
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
