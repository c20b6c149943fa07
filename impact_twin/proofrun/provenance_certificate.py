"""Reads what a signing certificate claims, and compares it with what the verifier expects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from impact_twin.proofrun.provenance_format import RefusedError
from impact_twin.proofrun.provenance_words import (
    CLAIM_OF,
    AttestationCheck,
    CertificateClaims,
    Expectations,
    shown,
)

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

# Fulcio's extensions: https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
_ARC = "1.3.6.1.4.1.57264.1."
_NUMBERS = {
    "issuer": 8,
    "signer_workflow": 9,
    "signer_digest": 10,
    "runner": 11,
    "repository": 12,
    "source_digest": 13,
    "source_ref": 14,
    "repository_id": 15,
    "owner_id": 17,
    "caller_workflow": 18,
    "trigger": 20,
    "run_url": 21,
    "visibility": 22,
}
_OLD_ISSUER = 1
_RUN = re.compile(r"/actions/runs/([1-9][0-9]{0,19})/attempts/([1-9][0-9]{0,5})")
_UTF8_STRING = 0x0C


def read_claims(certificate: Certificate) -> CertificateClaims:
    """Return what a certificate claims.

    Raises:
        RefusedError: an extension can't be read, or two of its places contradict each other.
    """
    found = _extensions(certificate)
    texts = {name: _utf8(found[number]) for name, number in _NUMBERS.items() if number in found}
    if "issuer" not in texts and _OLD_ISSUER in found:
        texts["issuer"] = _decoded(found[_OLD_ISSUER])
    identity = _identity(certificate)
    signer = texts.get("signer_workflow")
    if signer is not None and signer != identity:
        raise RefusedError(
            f"the certificate is for {shown(identity)} but names the signer {shown(signer)}"
        )
    run_id, attempt = _run(texts.get("run_url"), texts.get("repository"))
    return CertificateClaims(identity=identity, run_id=run_id, run_attempt=attempt, **texts)


def compare(claims: CertificateClaims, expectations: Expectations) -> tuple[AttestationCheck, ...]:
    """Compare each expectation with the certificate, exactly.

    Returns:
        One check for each, in order; all are made, so that every difference is named.
    """
    return tuple(_compare(claims, name, wanted) for name, wanted in expectations.asked())


def names_of(claims: CertificateClaims) -> tuple[str, ...]:
    """Return the names of the claims that the certificate makes and that can be compared."""
    return tuple(name for name in CLAIM_OF if claims.get(name) is not None)


def _compare(claims: CertificateClaims, name: str, wanted: str | int) -> AttestationCheck:
    found = claims.get(name)
    if type(found) is type(wanted) and found == wanted:
        return AttestationCheck(name, "held", shown(found))
    message = f"the certificate says {shown(found)}, you expect {shown(wanted)}"
    if str(found).lower() == str(wanted).lower():
        message += "; upper and lower case count"
    return AttestationCheck(name, "failed", message)


def _extensions(certificate: Certificate) -> dict[int, bytes]:
    from cryptography.x509 import UnrecognizedExtension

    try:
        every = list(certificate.extensions)
    except Exception:
        raise RefusedError("the certificate's extensions can't be read") from None
    return {
        int(oid.removeprefix(_ARC)): extension.value.value
        for extension in every
        if isinstance(extension.value, UnrecognizedExtension)
        and (oid := extension.oid.dotted_string).startswith(_ARC)
        and oid.removeprefix(_ARC).isdigit()
    }


def _identity(certificate: Certificate) -> str | None:
    from cryptography.x509 import (
        ExtensionNotFound,
        RFC822Name,
        SubjectAlternativeName,
        UniformResourceIdentifier,
    )

    try:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return None
    every = names.get_values_for_type(UniformResourceIdentifier)
    every = every or names.get_values_for_type(RFC822Name)
    if len(names) > 1:
        raise RefusedError(f"the certificate is for {len(names)} identities")
    return every[0] if every else None


def _run(url: str | None, repository: str | None) -> tuple[str | None, int | None]:
    if url is None or repository is None or not url.startswith(repository + "/"):
        return None, None
    match = _RUN.fullmatch(url.removeprefix(repository))
    return (match[1], int(match[2])) if match else (None, None)


def _utf8(der: bytes) -> str:
    """Return the text of a DER UTF8String; lengths below 2^16 bytes."""
    if len(der) >= 2 and der[0] == _UTF8_STRING:
        length, start = der[1], 2
        if length > 0x80:
            start = 2 + (length & 0x7F)
            length = int.from_bytes(der[2:start], "big") if start <= 4 else -1
        if length == len(der) - start:
            return _decoded(der[start:])
    raise RefusedError("an extension of the certificate is no text")


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("an extension of the certificate is no text") from None
