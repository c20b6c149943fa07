"""What the board keeps of one file; the bundle itself is let go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON
from impact_twin.proofrun.checks import RUNGS
from impact_twin.proofrun.eligibility import Reason
from impact_twin.proofrun.verify import Verification, Verifier
from impact_twin.report.observations import iter_cases
from impact_twin.statistics.compare import GroupCount

if TYPE_CHECKING:
    from impact_twin.proofrun.attested import Attested

RATES = ("secure_utility", "benign_utility", "attack_success")
"""The rates that every row shows."""

_GITHUB = "https://github.com/"
_LONGEST = 400

Attest = Callable[[bytes, Verification], "Attested"]


@dataclass(frozen=True)
class RunClaim:
    """The CI run that a bundle comes from.

    Attributes:
        repository: `owner/name`.
        certified: Whether a certificate with a genuine signature names it; otherwise the bundle
            only claims it.
        run_id: The run, as text; empty when it isn't named.
        run_number: How many runs of its workflow there had been; a claim.
    """

    repository: str
    certified: bool
    run_id: str
    run_number: int | None


@dataclass(frozen=True)
class Facts:
    """What a verified bundle holds, as far as the board shows it. Texts are as the file has them.

    Attributes:
        submitter: Who submits.
        source: Where agent or run can be seen.
        agent: The agent's name.
        bundle_digest: The bundle's identity.
        report_digest: The report's; the same for a copy in another envelope.
        plan_digest: The plan's.
        suite_id: The suite's name.
        suite_digest: Its digest.
        starts: For each case that ran, digest of its trace, with when each try started and for how
            long; no two runs share one.
        trials: Planned trials.
        n: Planned pair-trials.
        classes: How often each outcome class occurred.
        rates: `RATES` of the aggregate, as the report has them.
        pairs: Counts of secure utility for each pair.
        labels: How many pairs are stable, variable, undetermined.
        reasons: Why it may not be ranked; empty when it may.
        tier: Name of its tier.
        missing: What keeps it from the next tier.
        run: Where it was made; None when nothing says.
    """

    submitter: str
    source: str
    agent: str
    bundle_digest: str
    report_digest: str
    plan_digest: str
    suite_id: str
    suite_digest: str
    starts: frozenset[tuple[JSON, ...]]
    trials: int
    n: int
    classes: Mapping[str, int]
    rates: Mapping[str, Mapping[str, JSON]]
    pairs: Mapping[str, GroupCount]
    labels: Mapping[str, int]
    reasons: tuple[Reason, ...]
    tier: str
    missing: tuple[str, ...]
    run: RunClaim | None


@dataclass(frozen=True)
class Entry:
    """One file of the folder.

    Attributes:
        name: The file's name.
        digest: Of its bytes; empty when it can't be read.
        problem: Why it is refused; empty when it isn't.
        facts: What it holds; None when it is refused.
    """

    name: str
    digest: str
    problem: str
    facts: Facts | None


def refused(name: str, problem: str, digest: str = "") -> Entry:
    """Return the entry of a file that the board can't take."""
    return Entry(name, digest, problem, None)


def make_entry(name: str, data: bytes, verifier: Verifier, attest: Attest | None = None) -> Entry:
    """Verify one file and keep what the board shows of it. Raises nothing for what it holds.

    Args:
        name: The file's name.
        data: Its bytes.
        verifier: With the suites that are known.
        attest: Judges the attestations beside it; None when there are none.

    Raises:
        InputError: `attest` raised it.
    """
    verification = verifier.verify(data)
    failed = verification.failed
    if failed is not None or verification.bundle is None:
        what = "it does not verify"
        if failed is not None:
            what = (
                f"rung {failed.rung} ({RUNGS[failed.rung]}), check {failed.name}: "
                f"{failed.message[:_LONGEST]}"
            )
        return refused(name, what, verification.digest)
    attested = None if attest is None else attest(data, verification)
    problem = None if attested is None else _broken(attested)
    if problem is not None:
        return refused(name, f"rung 7 (provenance): {problem[:_LONGEST]}", verification.digest)
    return Entry(name, verification.digest, "", _facts(verification, attested))


def _broken(attested: Attested) -> str | None:
    """The problem of an attestation that does not hold; one that can't be judged adds nothing."""
    for what, result in (("bundle", attested.result), ("plan", attested.plan)):
        if result is not None and result.status == "failed":
            return f"the {what}'s attestation does not hold: {result.problem}"
    return None


def _facts(verification: Verification, attested: Attested | None) -> Facts:
    bundle, eligibility = verification.bundle, verification.eligibility
    assert bundle is not None
    assert eligibility is not None
    report, digests = bundle["report"], bundle["digests"]
    aggregate, pairs = report["summary"]["aggregate"], report["summary"]["pairs"]
    tier = verification.tier if attested is None else attested.tier
    assert tier is not None
    return Facts(
        submitter=bundle["submission"]["submitter"],
        source=bundle["submission"]["source"],
        agent=report["identity"]["agent"]["name"],
        bundle_digest=verification.digest,
        report_digest=digests["report"],
        plan_digest=digests["plan"],
        suite_id=report["identity"]["suite"]["id"],
        suite_digest=digests["suite"],
        starts=frozenset(_starts(report)),
        trials=report["plan"]["trials"],
        n=aggregate["n"],
        classes=dict(aggregate["classes"]),
        rates={name: aggregate["rates"][name] for name in RATES},
        pairs={row["pair"]: _count(row["rates"]["secure_utility"]) for row in pairs},
        labels=Counter(row["label"] for row in pairs),
        reasons=eligibility.reasons,
        tier=tier.name,
        missing=() if attested is None else attested.missing,
        run=_run(bundle["ci"], attested),
    )


def _starts(report: Mapping[str, JSON]) -> Iterator[tuple[JSON, ...]]:
    for row in iter_cases(report):
        tries = row.case["attempts"]
        if tries:
            times = tuple((item["started"], item["duration_s"]) for item in tries)
            yield row.case["trace"], row.pair, row.twin, times


def _count(rate: Mapping[str, JSON]) -> GroupCount:
    return GroupCount(rate["count"], rate["unresolved"], rate["n"])


def _run(ci: Mapping[str, JSON] | None, attested: Attested | None) -> RunClaim | None:
    number = None if ci is None else ci.get("run_number")
    claims = None if attested is None else attested.result.claims
    if claims is not None and claims.repository:
        name = claims.repository.removeprefix(_GITHUB)
        return RunClaim(name, True, claims.run_id or "", number)
    if ci is None or not ci["repository"]:
        return None
    run_id = ci["run_id"]
    return RunClaim(ci["repository"], False, "" if run_id is None else str(run_id), number)
