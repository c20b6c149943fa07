"""The bundle: a report in its content-addressed envelope."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from impact_twin import __version__
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.quick import canonical_parsed, digest_parsed
from impact_twin.report.model import plan_of

KIND = "impact-twin/bundle"
SCHEMA_VERSION = 1

STATEMENT = (
    "The envelope adds integrity, not certainty: it holds the report's own "
    "fixed_suite_pair_trial observations and the same Wilson intervals."
)
"""What every bundle says of itself."""


def make_bundle(
    report: Mapping[str, JSON],
    *,
    submitter: str,
    source: str,
    notes: str = "",
    ci: Mapping[str, JSON] | None = None,
) -> dict[str, JSON]:
    """Return the bundle of a report. Nothing is checked here: verifying does that.

    Args:
        report: A report of the current schema.
        submitter: Who submits, as `@handle`.
        source: Where the agent or the run can be seen: an https address.
        notes: Anything else, in plain text.
        ci: What `impact_twin.proofrun.claims.ci_claims` gave; None outside of CI.

    Raises:
        InputError: the report has no canonical form.
    """
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "statement": STATEMENT,
        "submission": {"submitter": submitter, "source": source, "notes": notes},
        "producer": {"impact_twin": __version__, "python": platform.python_version()},
        "ci": None if ci is None else dict(ci),
        "digests": digests_of(report),
        "report": dict(report),
    }


def bundle_bytes(bundle: Mapping[str, JSON]) -> bytes:
    """Return the bytes of a bundle; their SHA-256 is its identity.

    Raises:
        InputError: it has no canonical form.
    """
    return canonical_parsed(bundle)


def digests_of(report: Mapping[str, JSON]) -> dict[str, str]:
    """Return the digests that a bundle names.

    Returns:
        `report`, of the whole report; `suite`, as the report names it; `plan`, of the plan.json
        that the report gives back; `traces` and `texts`, of the sorted lists of their digests.

    Raises:
        InputError: a part has no canonical form.
    """
    return {
        "report": digest_parsed(report),
        "suite": report["identity"]["suite"]["digest"],
        "plan": digest_parsed(plan_of(report)),
        "traces": digest_parsed(sorted(report["traces"])),
        "texts": digest_parsed(sorted(report["texts"])),
    }
