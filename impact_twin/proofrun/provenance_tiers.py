"""How much an attestation adds to a bundle: its tier, and what is proven, claimed, unknowable.

A tier is a pure function of the results of two checks and of what the bundle says of its own run.
docs/provenance.md explains each condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from impact_twin.canonical import canonical_bytes, digest_bytes
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.provenance_words import (
    CLAIM_OF,
    GITHUB,
    IDENTITY,
    AttestationResult,
    CertificateClaims,
    shown,
    utc,
)
from impact_twin.proofrun.tiers import (
    CI_ATTESTED,
    CLAIMED,
    PRE_REGISTERED,
    PROVEN,
    UNKNOWABLE,
    Tier,
    self_attested,
)
from impact_twin.report.model import plan_of

# One run, by one workflow, over one commit: what plan and bundle must agree on.
_SAME = ("issuer", "repository", "signer-workflow", "signer-digest", "source-digest", "run-id")


@dataclass(frozen=True)
class RunFacts:
    """What a bundle says of its own run.

    Attributes:
        plan: The digest of its plan, `sha256:…`.
        resumed: How often the run was resumed.
        isolation: `thread` or `process`.
        first_start: Unix seconds at which the first case began, by the run's own clock; None when
            none did.
        ci: What `submit` recorded of the CI run; None outside of CI.
    """

    plan: str
    resumed: int
    isolation: str
    first_start: float | None
    ci: Mapping[str, JSON] | None


@dataclass(frozen=True)
class TierDecision:
    """The tier of a bundle, and why it isn't a higher one.

    Attributes:
        tier: What it is worth, with everything that is proven, claimed and unknowable.
        missing: What keeps it from the next tier, one printable line each; empty at the highest.
    """

    tier: Tier
    missing: tuple[str, ...]


def registered_plan(report: Mapping[str, JSON]) -> bytes:
    """Return the bytes that an attestation of the report's plan must cover.

    Args:
        report: A report that keeps to its schema.
    """
    return canonical_bytes(plan_of(report))


def run_facts(bundle: Mapping[str, JSON]) -> RunFacts:
    """Return what a bundle says of its run.

    Args:
        bundle: A bundle that keeps to its schema.
    """
    report = bundle["report"]
    run = report["identity"]["run"]
    starts = [
        attempt["started"]
        for pair in report["pair_trials"]
        for twin in ("clean", "poisoned")
        for attempt in pair[twin]["attempts"]
    ]
    return RunFacts(
        plan=digest_bytes(registered_plan(report)),
        resumed=run["resumed"],
        isolation=run["isolation"],
        first_start=min(starts, default=None),
        ci=bundle.get("ci"),
    )


def tier_of(
    bundle: Mapping[str, JSON],
    attestation: AttestationResult | None,
    plan: AttestationResult | None = None,
) -> TierDecision:
    """Return the tier of a bundle that verifies.

    Args:
        bundle: A bundle whose every other check held.
        attestation: Result for the bundle file's own bytes; None when no attestation was given.
        plan: Result for `registered_plan` of its report, checked with the same expectations.
    """
    return decide_tier(self_attested(bundle), attestation, plan, run_facts(bundle))


def decide_tier(
    base: Tier,
    attestation: AttestationResult | None,
    plan: AttestationResult | None,
    facts: RunFacts,
) -> TierDecision:
    """Return the tier; `tier_of` with its parts given.

    Args:
        base: What the bundle is worth by itself.
        attestation: As for `tier_of`.
        plan: As for `tier_of`.
        facts: What the bundle says of its run.
    """
    missing = _not_attested(attestation)
    if attestation is None or attestation.claims is None or missing:
        return TierDecision(_with_claims(base, _run_number(facts.ci)), tuple(missing))
    tier = _attested(attestation, attestation.claims, facts)
    missing = _not_registered(attestation, plan, facts)
    if plan is None or missing:
        return TierDecision(tier, tuple(missing))
    return TierDecision(_registered(tier, plan, facts), ())


def _not_attested(attestation: AttestationResult | None) -> list[str]:
    if attestation is None:
        return ["no attestation was given (--attestation)"]
    if not attestation.verified:
        return [f"the attestation is {attestation.status}: {attestation.problem}"]
    unnamed = [name for name in CLAIM_OF if name in IDENTITY - set(attestation.checked)]
    return [f"you did not say which {name} to expect (--{name})" for name in unnamed]


def _not_registered(
    attestation: AttestationResult, plan: AttestationResult | None, facts: RunFacts
) -> list[str]:
    if plan is None:
        return ["no attestation of the plan was given (--plan-attestation)"]
    if not plan.verified:
        return [f"the plan's attestation is {plan.status}: {plan.problem}"]
    found = [f"the plan's {name} was not compared" for name in sorted(IDENTITY - set(plan.checked))]
    if attestation.claims is not None and plan.claims is not None:
        found += _different_runs(attestation.claims, plan.claims)
        found += _not_this_run(attestation.claims, facts.ci)
    if plan.artifact != facts.plan:
        found.append("the plan that was signed is not the one that the result names")
    found += _wrong_order(attestation.signed_at, plan.signed_at, facts.first_start)
    if facts.resumed:
        found.append("the run was resumed")
    if facts.isolation != "process":
        found.append(f"the agent ran in the recorder's own process ({shown(facts.isolation)})")
    return found


def _different_runs(bundle: CertificateClaims, plan: CertificateClaims) -> list[str]:
    found = []
    for name in _SAME:
        ours, theirs = bundle.get(name), plan.get(name)
        if ours is None or ours != theirs:
            found.append(f"{name}: the plan's is {shown(theirs)}, the bundle's {shown(ours)}")
    for what, claims in (("plan", plan), ("bundle", bundle)):
        if claims.run_attempt != 1:
            found.append(f"the {what} was signed in attempt {shown(claims.run_attempt)} of its run")
        if claims.runner != "github-hosted":
            found.append(f"the {what} was signed on a runner that is {shown(claims.runner)}")
    return found


def _not_this_run(claims: CertificateClaims, ci: Mapping[str, JSON] | None) -> list[str]:
    if ci is None:
        return ["the bundle does not say that it was made in a CI run"]
    certified = {
        "repository": claims.repository,
        "sha": claims.source_digest,
        "run_id": claims.run_id,
        "run_attempt": claims.run_attempt,
    }
    said = {
        "repository": f"{GITHUB}{ci.get('repository')}",
        "sha": ci.get("sha"),
        "run_id": str(ci.get("run_id")),
        "run_attempt": ci.get("run_attempt"),
    }
    return [
        f"the bundle says that it was made with {name} {shown(said[name])}, "
        f"the certificate {shown(value)}"
        for name, value in certified.items()
        if value is None or said[name] != value
    ]


def _wrong_order(bundle: int | None, plan: int | None, first: float | None) -> list[str]:
    if bundle is None or plan is None:
        return ["a signature has no single verified time, so the order can't be told"]
    found = []
    if plan > bundle:
        found.append(f"the plan was signed at {utc(plan)}, after the bundle")
    if first is None:
        found.append("no case was started")
    elif first < plan:
        found.append(f"the first case began at {utc(first)}, before the plan was signed")
    return found


def _attested(attestation: AttestationResult, claims: CertificateClaims, facts: RunFacts) -> Tier:
    when = "" if attestation.signed_at is None else f" at {utc(attestation.signed_at)}"
    signed = f"These exact bytes were signed{when}, and a public log holds the signature."
    expected = tuple(
        f"Certified, and as you expect: {name} {shown(claims.get(name))}."
        for name in attestation.checked
    )
    certified = tuple(
        f"Certified, but you named none to expect: {name} {shown(claims.get(name))}."
        for name in attestation.only_claimed
    )
    return Tier(
        CI_ATTESTED,
        (*PROVEN, signed, *expected),
        (*CLAIMED, *certified, *_run_number(facts.ci)),
        UNKNOWABLE,
    )


def _registered(tier: Tier, plan: AttestationResult, facts: RunFacts) -> Tier:
    signed = "" if plan.signed_at is None else f" at {utc(plan.signed_at)}"
    first = "" if facts.first_start is None else f" (the first at {utc(facts.first_start)})"
    return replace(
        tier,
        name=PRE_REGISTERED,
        proven=(
            *tier.proven,
            f"The plan that the result names (agent, suite, trials, seed) was signed{signed}, in "
            "the first attempt of the same run and before the result was.",
        ),
        claimed=(
            *tier.claimed,
            f"Every case began after the plan was signed{first}: by the run's own clock.",
            "The run was not resumed, and each agent had a process of its own.",
        ),
    )


def _with_claims(tier: Tier, more: tuple[str, ...]) -> Tier:
    return replace(tier, claimed=(*tier.claimed, *more))


def _run_number(ci: Mapping[str, JSON] | None) -> tuple[str, ...]:
    number = None if ci is None else ci.get("run_number")
    if not isinstance(number, int) or isinstance(number, bool):
        return ()
    return (f"It was run number {number} of its workflow in that repository.",)
