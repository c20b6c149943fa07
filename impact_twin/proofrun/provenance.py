"""Checks where an artifact came from: a Sigstore attestation against what the verifier expects.

Bytes in, result out: no network and no clock. The identity that counts is the signing
certificate's, compared with the verifier's own words; what the artifact or the statement's
predicate say about their origin is never used. docs/provenance.md says what this shows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from impact_twin.canonical import digest_bytes
from impact_twin.errors import InputError
from impact_twin.proofrun.provenance_certificate import compare, names_of, read_claims
from impact_twin.proofrun.provenance_format import (
    MAX_BYTES,
    RefusedError,
    UnsupportedError,
    check_format,
    read_bundle,
)
from impact_twin.proofrun.provenance_sigstore import Signed, check_signature, load_verifier
from impact_twin.proofrun.provenance_statement import (
    PAYLOAD_TYPE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    check_payload_type,
    check_predicate_type,
    find_subject,
    read_statement,
)
from impact_twin.proofrun.provenance_words import (
    CLAIM_OF,
    FIXED_CHECKS,
    GITHUB_ISSUER,
    RUNNERS,
    AttestationCheck,
    AttestationResult,
    CertificateClaims,
    CheckStatus,
    Expectations,
    Status,
    shown,
)

__all__ = [
    "FIXED_CHECKS",
    "GITHUB_ISSUER",
    "MAX_BYTES",
    "NOTHING_EXPECTED",
    "PAYLOAD_TYPE",
    "PREDICATE_TYPE",
    "RUNNERS",
    "STATEMENT_TYPE",
    "AttestationCheck",
    "AttestationResult",
    "CertificateClaims",
    "Expectations",
    "Status",
    "check_attestation",
]

_OLD_ROOT = "one newer than this release may need a newer trusted root: --trusted-root"
_ROOT_WORDS = ("chain", "verified time", "SCT", "keyring")

NOTHING_EXPECTED = Expectations()
"""Then the certificate's claims are told, and nothing is compared with them."""

_T = TypeVar("_T")


def check_attestation(
    artifact: bytes,
    attestation: bytes,
    expectations: Expectations = NOTHING_EXPECTED,
    *,
    trusted_root: bytes | None = None,
) -> AttestationResult:
    """Check that an attestation is genuine, covers the artifact, and comes from who you expect.

    Args:
        artifact: The attested bytes.
        attestation: The Sigstore bundle, JSON of up to `MAX_BYTES`.
        expectations: Where the artifact should come from. With nothing expected the result tells
            the certificate's claims, and that nothing was compared with them.
        trusted_root: A Sigstore trusted root in JSON; None is the one that this release carries,
            of Sigstore's public instance.

    Returns:
        The named checks in order. Nothing in `artifact` or `attestation` raises.

    Raises:
        InputError: the extra `proof` is not installed, or `trusted_root` can't be read.
    """
    ladder = _Ladder(load_verifier(trusted_root), bundled=trusted_root is None)
    with contextlib.suppress(_StopError):
        ladder.climb(artifact, attestation, expectations)
    return ladder.result(artifact, expectations)


class _StopError(Exception):
    """A check did not hold, so that later ones have nothing to stand on."""


class _Ladder:
    """Makes the checks one after the other and keeps what each said."""

    def __init__(self, verifier: Any, *, bundled: bool) -> None:
        self._verifier = verifier
        self._hint = _OLD_ROOT if bundled else ""
        self._checks: list[AttestationCheck] = []
        self._signed: Signed | None = None
        self._claims: CertificateClaims | None = None
        self._subject: str | None = None

    def climb(self, artifact: bytes, attestation: bytes, expectations: Expectations) -> None:
        """Make every check up to the first that does not hold.

        Raises:
            _StopError: one did not hold.
        """
        document = self._make("read", lambda: read_bundle(attestation), lambda _: "strict JSON")
        self._make("format", lambda: check_format(document), str)
        signed = self._make(
            "signature",
            lambda: check_signature(self._verifier, attestation, artifact),
            lambda _: "certificate chain, transparency log, time and signature",
            self._hint,
        )
        claims = self._make("certificate", lambda: read_claims(signed.certificate), _who)
        self._signed, self._claims = signed, claims
        self._make("payload-type", lambda: check_payload_type(signed.payload_type), str)
        statement = self._make(
            "statement", lambda: read_statement(signed.payload), lambda _: STATEMENT_TYPE
        )
        self._make("predicate-type", lambda: check_predicate_type(statement), str)
        self._subject = self._make(
            "subject",
            lambda: find_subject(statement, artifact),
            lambda name: f"the digest of {shown(name)} is this file's",
        )
        self._checks += compare(claims, expectations)

    def result(self, artifact: bytes, expectations: Expectations) -> AttestationResult:
        """Return what came out."""
        made = {check.name for check in self._checks}
        rest = [name for name in (*FIXED_CHECKS, *expectations.named) if name not in made]
        checks = (*self._checks, *(AttestationCheck(name, "not made") for name in rest))
        found = {check.status for check in checks}
        status: Status = (
            "failed"
            if "failed" in found
            else "unsupported"
            if "unsupported" in found
            else "verified"
        )
        checked = tuple(
            check.name for check in checks if check.name in CLAIM_OF and check.status == "held"
        )
        claimed = () if self._claims is None else names_of(self._claims)
        compared = {check.name for check in checks if check.status in {"held", "failed"}}
        return AttestationResult(
            status=status,
            checks=checks,
            artifact=digest_bytes(artifact),
            claims=self._claims,
            checked=checked,
            only_claimed=tuple(name for name in claimed if name not in compared),
            subject=self._subject,
            signed_at=None if self._signed is None else self._signed.signed_at,
        )

    def _make(
        self, name: str, step: Callable[[], _T], say: Callable[[_T], str], hint: str = ""
    ) -> _T:
        try:
            found = step()
        except UnsupportedError as error:
            self._stop(name, "unsupported", str(error))
        except InputError as error:
            self._stop(name, "failed", error.what)
        except RefusedError as error:
            told = hint and any(word in str(error) for word in _ROOT_WORDS)
            self._stop(name, "failed", f"{error} ({hint})" if told else str(error))
        self._checks.append(AttestationCheck(name, "held", say(found)))
        return found

    def _stop(self, name: str, status: CheckStatus, message: str) -> NoReturn:
        self._checks.append(AttestationCheck(name, status, message))
        raise _StopError


def _who(claims: CertificateClaims) -> str:
    return f"given to {shown(claims.identity)} by {shown(claims.issuer)}"
