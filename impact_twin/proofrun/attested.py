"""Rung 7: a bundle with its attestation, judged together."""

from __future__ import annotations

from dataclasses import dataclass

from impact_twin.proofrun.checks import Check
from impact_twin.proofrun.provenance import AttestationResult, Expectations, check_attestation
from impact_twin.proofrun.provenance_tiers import registered_plan, tier_of
from impact_twin.proofrun.tiers import Tier
from impact_twin.proofrun.verify import Verification


@dataclass(frozen=True)
class Attested:
    """What the attestations of a bundle showed.

    Attributes:
        result: Of the bundle's own attestation.
        plan: Of the attestation of its plan; None when none was given, or the bundle failed.
        tier: What the bundle is worth with them; None when it failed on an earlier rung.
        missing: What keeps it from the next tier, one line each.
    """

    result: AttestationResult
    plan: AttestationResult | None
    tier: Tier | None
    missing: tuple[str, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        """Rung 7: one check for each attestation."""
        found = [_check(self.result, "the bundle's attestation")]
        if self.plan is not None:
            found.append(_check(self.plan, "the plan's attestation"))
        return tuple(found)

    @property
    def held(self) -> bool:
        """Whether every attestation that was given is verified."""
        return all(check.status == "held" for check in self.checks)


def judge(
    data: bytes,
    verification: Verification,
    attestation: bytes,
    expectations: Expectations,
    *,
    plan_attestation: bytes | None = None,
    trusted_root: bytes | None = None,
) -> Attested:
    """Check the attestations of a bundle that was verified, or failed to.

    Args:
        data: The bundle's bytes.
        verification: What verifying them showed.
        attestation: The Sigstore bundle for these bytes.
        expectations: Where the verifier expects them to come from.
        plan_attestation: The Sigstore bundle for the plan.json of the run.
        trusted_root: See `check_attestation`.

    Raises:
        InputError: the extra `proof` is not installed, or the trusted root can't be read.
    """
    result = check_attestation(data, attestation, expectations, trusted_root=trusted_root)
    if verification.bundle is None:
        return Attested(result, None, None, ())
    plan = None
    if plan_attestation is not None:
        content = registered_plan(verification.bundle["report"])
        plan = check_attestation(content, plan_attestation, expectations, trusted_root=trusted_root)
    decision = tier_of(verification.bundle, result, plan)
    return Attested(result, plan, decision.tier, decision.missing)


def _check(result: AttestationResult, what: str) -> Check:
    if result.status == "verified":
        compared = ", ".join(result.checked)
        how = f"equal to what you expect: {compared}" if compared else "compared with nothing"
        return Check("provenance", "held", f"{what} is genuine; {how}")
    word = "can't be judged here" if result.status == "unsupported" else "does not hold"
    return Check("provenance", "failed", f"{what} {word}: {result.problem}")
