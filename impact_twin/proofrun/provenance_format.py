"""Reads an attestation file strictly and says whether its kind can be judged here at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from impact_twin.canonical import loads_strict
from impact_twin.proofrun.provenance_words import shown

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32

_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle"
_MEDIA_TYPES = frozenset(
    {
        f"{_MEDIA_TYPE}+json;version=0.1",
        f"{_MEDIA_TYPE}+json;version=0.2",
        f"{_MEDIA_TYPE}+json;version=0.3",
        f"{_MEDIA_TYPE}.v0.3+json",
    }
)
_ENTRIES = frozenset({("dsse", "0.0.1"), ("hashedrekord", "0.0.1"), ("hashedrekord", "0.0.2")})


class UnsupportedError(Exception):
    """The file may well be genuine, but nothing here can tell; the text says why."""


class RefusedError(Exception):
    """A check did not hold; the text says what was wrong."""


def read_bundle(data: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a Sigstore bundle.

    Args:
        data: The attestation file, up to `MAX_BYTES`.

    Raises:
        InputError: not strict JSON; a key that occurs twice is refused here, since two readers
            could see two different signatures in it.
        RefusedError: JSON, but no object.
    """
    document = loads_strict(data, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    if not isinstance(document, dict):
        raise RefusedError("no JSON object")
    return document


def check_format(document: Mapping[str, Any]) -> str:
    """Say what kind of bundle it is, when it is one that can be judged.

    Raises:
        UnsupportedError: a kind of attestation that the library can't judge.
        RefusedError: no attestation.
    """
    media_type = document.get("mediaType")
    if media_type is None:
        _refuse_other_kind(document)
    if not isinstance(media_type, str) or not media_type.startswith(_MEDIA_TYPE):
        raise RefusedError(f"no Sigstore bundle: mediaType is {shown(media_type)}")
    if media_type not in _MEDIA_TYPES:
        raise UnsupportedError(f"a bundle version that is not known here: {shown(media_type)}")
    material = document.get("verificationMaterial")
    if not isinstance(material, dict):
        raise RefusedError("the bundle holds no verificationMaterial")
    if "publicKey" in material:
        raise UnsupportedError("signed with a bare key, which says nothing about who holds it")
    _check_log(material, old=media_type.endswith("=0.1"))
    return "a message signature" if "messageSignature" in document else "a DSSE envelope"


def _refuse_other_kind(document: Mapping[str, Any]) -> None:
    if "attestation_bundles" in document or {"verification_material", "envelope"} <= set(document):
        raise UnsupportedError("a PEP 740 attestation, not a Sigstore bundle")
    if "attestations" in document:
        raise UnsupportedError(
            "a list of attestations; take one Sigstore bundle out of it and give that"
        )


def _check_log(material: Mapping[str, Any], *, old: bool) -> None:
    entries = material.get("tlogEntries")
    if not entries:
        raise UnsupportedError(
            "no entry of a public transparency log, as from GitHub's own Sigstore instance, which "
            "signs for private repositories; `gh attestation verify` can judge those"
        )
    if not isinstance(entries, list) or not isinstance(entries[0], dict):
        raise RefusedError("tlogEntries is no list of entries")
    if len(entries) > 1:
        raise UnsupportedError(f"{len(entries)} log entries; only bundles with one can be judged")
    kind = entries[0].get("kindVersion")
    if not isinstance(kind, dict):
        raise RefusedError("the log entry names no kind")
    if (kind.get("kind"), kind.get("version")) not in _ENTRIES:
        found = f"{shown(kind.get('kind'))} {shown(kind.get('version'))}"
        raise UnsupportedError(f"a log entry of kind {found}, which the library can't judge")
    proof = entries[0].get("inclusionProof")
    if old and not (isinstance(proof, dict) and proof.get("checkpoint")):
        # Version 0.1 allows a promise alone; the library wants the proof with its checkpoint.
        raise UnsupportedError("an old bundle without a proof of inclusion in the log")
