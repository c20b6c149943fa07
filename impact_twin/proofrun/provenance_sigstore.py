"""The one place that calls the Sigstore library: chain, log, time and signature, offline."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from impact_twin.canonical import loads_strict
from impact_twin.errors import InputError
from impact_twin.proofrun.provenance_format import MAX_BYTES, MAX_DEPTH, RefusedError
from impact_twin.proofrun.provenance_words import shown

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

ROOT_FILE = "trusted_root.json"
ROOT_OPTION = "--trusted-root"
_QUIET = logging.NullHandler()


@dataclass(frozen=True)
class Signed:
    """What a signature that held covers.

    Attributes:
        certificate: The signing certificate, chained to the trusted root.
        payload_type: Of the DSSE envelope; None for a signature over the artifact itself.
        payload: Of the envelope, or empty.
        signed_at: Unix seconds by the log or a timestamp authority, when there is one such time.
    """

    certificate: Certificate
    payload_type: str | None
    payload: bytes
    signed_at: int | None


class _AnyIdentity:
    """A policy that leaves the identity to our own named checks, which follow."""

    def verify(self, cert: Certificate) -> None:
        """Accept; never the last word."""


def bundled_root() -> bytes:
    """Return the trusted root of Sigstore's public instance that this release carries."""
    return resources.files("impact_twin.proofrun").joinpath("_roots", ROOT_FILE).read_bytes()


def load_verifier(trusted_root: bytes | None) -> Any:
    """Return a verifier for a trusted root; opens no connection.

    Args:
        trusted_root: A Sigstore trusted root in JSON; None is the bundled one.

    Raises:
        InputError: the extra `proof` is not installed, or the root can't be read.
    """
    try:
        from sigstore.models import TrustedRoot
        from sigstore.verify import Verifier
        from sigstore_models.trustroot.v1 import TrustedRoot as RootData
    except ImportError:
        raise InputError(
            "checking an attestation needs the package sigstore",
            where="--attestation",
            mend="pip install 'impact-twin[proof]'",
        ) from None
    _quiet()
    data = bundled_root() if trusted_root is None else trusted_root
    loads_strict(data, where=ROOT_OPTION, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    try:
        return Verifier(trusted_root=TrustedRoot(RootData.from_json(data)))
    except Exception as error:
        raise InputError(
            f"is no trusted root of Sigstore: {_words(error)}",
            where=ROOT_OPTION,
            mend="Give one root as JSON, such as a line of `gh attestation trusted-root`.",
        ) from None


def check_signature(verifier: Any, attestation: bytes, artifact: bytes) -> Signed:
    """Check certificate chain, transparency log, time and signature.

    Args:
        verifier: From `load_verifier`.
        attestation: A bundle that `check_format` let pass.
        artifact: What a plain message signature should cover; an envelope covers its payload.

    Raises:
        RefusedError: something did not hold. The library also raises errors of other packages
            (ValueError, binascii.Error, pydantic's, a panic of its Rust parts) on hostile bytes.
    """
    from sigstore.models import Bundle

    try:
        bundle = Bundle.from_json(attestation)
        payload_type: str | None = None
        payload = b""
        view = json.loads(bundle.to_json())
        if view.get("dsseEnvelope"):
            payload_type, payload = verifier.verify_dsse(bundle, _AnyIdentity())
        else:
            verifier.verify_artifact(artifact, bundle, _AnyIdentity())
        return Signed(bundle.signing_certificate, payload_type, payload, _signed_at(view))
    except Exception as error:
        raise RefusedError(_words(error)) from None
    except BaseException as error:
        # A panic in Rust is no Exception, so that nobody swallows it by chance.
        if type(error).__name__ != "PanicException":
            raise
        raise RefusedError("a certificate or timestamp that can't be parsed") from None


def _signed_at(view: dict[str, Any]) -> int | None:
    """Return the one time that the library has verified; it needs at least one to accept."""
    from rfc3161_client import decode_timestamp_response

    material = view["verificationMaterial"]
    entry = material["tlogEntries"][0]
    if entry.get("integratedTime") and entry.get("inclusionPromise"):
        return int(entry["integratedTime"])
    stamps = (material.get("timestampVerificationData") or {}).get("rfc3161Timestamps") or []
    if len(stamps) != 1:
        return None
    stamp = decode_timestamp_response(base64.b64decode(stamps[0]["signedTimestamp"]))
    return int(stamp.tst_info.gen_time.timestamp())


def _words(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return shown(": ".join(lines[:2])) if lines else type(error).__name__


def _quiet() -> None:
    logger = logging.getLogger("sigstore")
    if _QUIET not in logger.handlers:
        logger.addHandler(_QUIET)
