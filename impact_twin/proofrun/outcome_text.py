"""What verifying showed, as lines for a terminal and as JSON. Text from files is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from impact_twin.procurement.model import JSON
from impact_twin.proofrun.checks import RUNGS, Check
from impact_twin.proofrun.eligibility import Eligibility
from impact_twin.proofrun.tiers import Tier
from impact_twin.proofrun.verify import Verification
from impact_twin.report.strips import wrap
from impact_twin.text import escape

_LONGEST = 1_000
_COLUMN = 18


def verification_lines(
    name: str,
    verification: Verification,
    *,
    tier: Tier | None = None,
    more: Sequence[Check] = (),
    width: int = 80,
) -> Iterator[str]:
    """Yield the lines about one file.

    Args:
        name: The file's name, as given.
        verification: What verifying it showed.
        tier: Its tier when an attestation was checked; its own otherwise.
        more: Further checks (of an attestation).
        width: Columns to keep to, >= 40.
    """
    checks = [*verification.checks, *more]
    held = verification.valid and all(check.status != "failed" for check in more)
    yield from wrap(f"{_safe(name)}: {'verified' if held else 'NOT VERIFIED'}", width)
    yield from (f"  {line}" for line in wrap(verification.digest, width - 2))
    for rung, title in RUNGS.items():
        yield from _rung_lines(
            rung, title, [check for check in checks if check.rung == rung], width
        )
    if not held or verification.eligibility is None:
        return
    tier = verification.tier if tier is None else tier
    if tier is not None:
        yield from _labelled("  tier", tier.name, width)
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
                yield from _labelled("" if place else f"  {title}", sentence, width)


def verification_json(
    name: str,
    verification: Verification,
    *,
    tier: Tier | None = None,
    more: Sequence[Check] = (),
    attestation: Mapping[str, JSON] | None = None,
) -> dict[str, JSON]:
    """Return what verifying one file showed, as JSON. Texts are as the file has them."""
    eligibility = verification.eligibility
    tier = verification.tier if tier is None else tier
    submission = None if verification.bundle is None else dict(verification.bundle["submission"])
    return {
        "file": name,
        "verified": verification.valid and all(check.status != "failed" for check in more),
        "bundle": verification.digest,
        "bytes": verification.size,
        "checks": [
            {
                "rung": check.rung,
                "name": check.name,
                "status": check.status,
                "message": check.message[:_LONGEST],
            }
            for check in (*verification.checks, *more)
        ],
        "submission": submission,
        "tier": None
        if tier is None
        else {
            "name": tier.name,
            "proven": list(tier.proven),
            "claimed": list(tier.claimed),
            "unknowable": list(tier.unknowable),
        },
        "eligible": None if eligibility is None else eligibility.eligible,
        "reasons": []
        if eligibility is None
        else [{"code": reason.code, "text": reason.text} for reason in eligibility.reasons],
        "attestation": None if attestation is None else dict(attestation),
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
        return
    for place, reason in enumerate(eligibility.reasons):
        yield from _labelled(
            "" if place else "  board", f"not eligible: {_safe(reason.text)}", width
        )


def _labelled(label: str, text: str, width: int) -> Iterator[str]:
    for line in wrap(text, width - _COLUMN):
        yield f"{label:<{_COLUMN}}{line}".rstrip()
        label = ""


def _safe(text: str) -> str:
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
