"""What a signed payload says: an in-toto statement about files, by their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from impact_twin.canonical import loads_strict
from impact_twin.errors import InputError
from impact_twin.proofrun.provenance_format import (
    MAX_BYTES,
    MAX_DEPTH,
    RefusedError,
    UnsupportedError,
)
from impact_twin.proofrun.provenance_words import shown

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
_LISTED = 3


def check_payload_type(payload_type: str | None) -> str:
    """Refuse a payload that is no in-toto statement.

    Args:
        payload_type: Of the envelope; None when the signature is over the artifact itself.

    Raises:
        RefusedError: it has another type.
        UnsupportedError: there is no payload.
    """
    if payload_type is None:
        raise UnsupportedError(
            "a genuine signature over this very file, but no statement of how it came to be"
        )
    if payload_type != PAYLOAD_TYPE:
        raise RefusedError(f"the payload is {shown(payload_type)}, not {PAYLOAD_TYPE}")
    return PAYLOAD_TYPE


def read_statement(payload: bytes) -> Mapping[str, Any]:
    """Return the in-toto statement of a payload.

    Raises:
        RefusedError: no strict JSON object, or another type of statement.
    """
    try:
        statement = loads_strict(payload, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    except InputError as error:
        raise RefusedError(f"the statement is refused: {error.what}") from None
    if not isinstance(statement, dict):
        raise RefusedError("the statement is no JSON object")
    if statement.get("_type") != STATEMENT_TYPE:
        raise RefusedError(
            f"the statement is {shown(statement.get('_type'))}, not {STATEMENT_TYPE}"
        )
    return statement


def check_predicate_type(statement: Mapping[str, Any]) -> str:
    """Refuse a statement that speaks of something else than how the file came to be.

    Raises:
        RefusedError: another predicate type.
    """
    found = statement.get("predicateType")
    if found != PREDICATE_TYPE:
        raise RefusedError(f"the predicate is {shown(found)}, not {PREDICATE_TYPE}")
    return PREDICATE_TYPE


def find_subject(statement: Mapping[str, Any], artifact: bytes) -> str:
    """Return the name of the subject whose SHA-256 is the artifact's.

    The library does not compare it: without this, a genuine attestation would fit any file.

    Raises:
        RefusedError: no subject has that digest.
    """
    wanted = hashlib.sha256(artifact).hexdigest()
    subjects = statement.get("subject")
    if not isinstance(subjects, list) or not subjects:
        raise RefusedError("the statement names no subject")
    for subject in subjects:
        if _sha256(subject) == wanted:
            name = subject.get("name")
            return name if isinstance(name, str) else ""
    named = [f"{shown(_name(subject))} {shown(_sha256(subject))}" for subject in subjects[:_LISTED]]
    more = f" and {len(subjects) - _LISTED} more" if len(subjects) > _LISTED else ""
    raise RefusedError(
        f"it is about other bytes: this file is sha256 {wanted}, it names {', '.join(named)}{more}"
    )


def _sha256(subject: object) -> object:
    digest = subject.get("digest") if isinstance(subject, dict) else None
    return digest.get("sha256") if isinstance(digest, dict) else None


def _name(subject: object) -> object:
    return subject.get("name") if isinstance(subject, dict) else None
