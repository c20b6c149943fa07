"""How dear cheating is made: the tiers, and what each proves, claims and can't know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from impact_twin.procurement.model import JSON

SELF_ATTESTED = "self-attested"
CI_ATTESTED = "CI-attested bytes"
PRE_REGISTERED = "pre-registered"
TIERS = (SELF_ATTESTED, CI_ATTESTED, PRE_REGISTERED)
"""The tiers, the weakest first."""


@dataclass(frozen=True)
class Tier:
    """What a verified file is worth.

    Attributes:
        name: One of `TIERS`.
        proven: What the checks showed, a sentence each.
        claimed: What the file says and nobody checked.
        unknowable: What no check of a file can show.
    """

    name: str
    proven: tuple[str, ...]
    claimed: tuple[str, ...]
    unknowable: tuple[str, ...]


PROVEN = (
    "Its bytes are those that its digest names.",
    "Every figure follows from the recorded cases.",
    "Every verdict follows from the recorded tool calls.",
    "The recorded tool calls give the recorded outputs and final states on a fresh world.",
)
CLAIMED = (
    "Who submits it, and which agent and model ran, in which versions.",
    "How each case ended, its final answer, times, usage, request counts and response ids.",
    "What the agent was shown after its own defences.",
)
UNKNOWABLE = (
    "Replay shows consistency, not occurrence: the suite is public, so anyone can write a perfect "
    "record.",
    "Whether a case really ended where its log ends.",
    "Whether other runs were thrown away before this one.",
)


def self_attested(bundle: Mapping[str, JSON]) -> Tier:
    """Return the tier of a bundle that was verified by itself, without an attestation."""
    claimed: tuple[str, ...] = CLAIMED
    if bundle["ci"] is not None:
        claimed += ("The CI run that it names: without an attestation anybody can name one.",)
    return Tier(SELF_ATTESTED, PROVEN, claimed, UNKNOWABLE)
