"""From a report to a bundle that verifies, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from impact_twin.errors import CheckFailedError, InputError
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.bundle import bundle_bytes, make_bundle
from impact_twin.proofrun.checks import RUNGS
from impact_twin.proofrun.shape import submission_problem
from impact_twin.proofrun.verify import Verification, Verifier
from impact_twin.text import storable


@dataclass(frozen=True)
class Submission:
    """A bundle that is ready to be sent.

    Attributes:
        data: Its bytes; their SHA-256 is its identity.
        verification: What verifying them showed.
    """

    data: bytes
    verification: Verification


def prepare(
    report: Mapping[str, JSON],
    verifier: Verifier,
    *,
    submitter: str,
    source: str,
    notes: str = "",
    ci: Mapping[str, JSON] | None = None,
) -> Submission:
    """Return the bundle of a report, once it is verified as anybody would verify it.

    Args:
        report: A report of the current schema.
        verifier: With the report's suite.
        submitter: Who submits, as `@handle`.
        source: Where the agent or the run can be seen: an https address without credentials.
        notes: Anything else, in plain text of at most 2,000 characters.
        ci: What `impact_twin.proofrun.claims.ci_claims` gave.

    Raises:
        InputError: submitter, source or notes are not of their form.
        CheckFailedError: the report would not verify; it names the rung.
    """
    notes = storable(notes)
    _check_options({"submitter": submitter, "source": source, "notes": notes})
    bundle = make_bundle(report, submitter=submitter, source=source, notes=notes, ci=ci)
    data = bundle_bytes(bundle)
    verification = verifier.verify(data)
    failed = verification.failed
    if failed is not None:
        raise CheckFailedError(
            f"the report would not verify: rung {failed.rung} ({RUNGS[failed.rung]}), check "
            f"{failed.name}: {failed.message}",
            mend="Submit the run directory as impact-twin wrote it.",
        )
    return Submission(data, verification)


_FORMS = {
    "submitter": "Write your handle with its @, like @someone.",
    "source": "Give an https address, without a user name or spaces, of at most 400 characters.",
    "notes": "Keep to 2,000 characters.",
}


def _check_options(submission: Mapping[str, str]) -> None:
    for name, value in submission.items():
        problem = submission_problem(name, value)
        if problem is not None:
            raise InputError(problem, where=f"--{name}", mend=_FORMS[name])
