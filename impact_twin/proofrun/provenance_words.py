"""The words of provenance: what a verifier expects, what a certificate claims, what came out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Literal

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.text import escape

GITHUB = "https://github.com/"
GITHUB_ISSUER = "https://token.actions.githubusercontent.com"
RUNNERS = ("github-hosted", "self-hosted")

Status = Literal["verified", "failed", "unsupported"]
CheckStatus = Literal["held", "failed", "unsupported", "not made"]

FIXED_CHECKS = (
    "read",
    "format",
    "signature",
    "certificate",
    "payload-type",
    "statement",
    "predicate-type",
    "subject",
)
"""The checks that every attestation goes through, in order; those asked for come after them."""

CLAIM_OF: Mapping[str, str] = {
    "issuer": "issuer",
    "repository": "repository",
    "signer-workflow": "signer_workflow",
    "signer-digest": "signer_digest",
    "source-ref": "source_ref",
    "source-digest": "source_digest",
    "runner": "runner",
    "run-id": "run_id",
    "run-attempt": "run_attempt",
    "trigger": "trigger",
}
"""Which claim of the certificate each expectation is compared with, in the order of checking."""

IDENTITY = frozenset({"issuer", "repository", "signer-workflow"})
"""What must have been compared before an attestation says who made it."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REPOSITORY = re.compile(r"(?:https://[^/\s]+/)?[^/\s@:]+/[^/\s@:]+")
_WORKFLOW = re.compile(r"(?:https://[^/\s]+/)?[^/\s@:]+/[^/\s@:]+/[^\s@]+@\S+")
_REF = re.compile(r"refs/\S+")
_DIGITS = re.compile(r"[1-9][0-9]{0,19}")
_SHOWN = 200


@dataclass(frozen=True)
class Expectations:
    """What the verifier, and never the file, says about where an artifact should come from.

    Values are compared exactly: upper and lower case count. None is "not asked".

    Attributes:
        repository: `owner/name` on github.com, or `https://host/owner/name`.
        signer_workflow: `owner/repository/.github/workflows/file.yml@ref`, or with `https://host/`;
            `ref` is a full ref (`refs/tags/v1`) or, where the caller pinned one, a commit.
        signer_digest: Full commit of the signer workflow's repository.
        source_ref: Full ref of `repository` that the run was started for.
        source_digest: Full commit of `repository`.
        issuer: Of the identity token. As soon as anything else is named it is `GITHUB_ISSUER`
            unless given.
        runner: One of `RUNNERS`.
        run_id: The number of the run, as text.
        run_attempt: From 1.
        trigger: The event that started the run.

    Raises:
        InputError: a value can't match any certificate.
    """

    repository: str | None = None
    signer_workflow: str | None = None
    signer_digest: str | None = None
    source_ref: str | None = None
    source_digest: str | None = None
    issuer: str | None = None
    runner: str | None = None
    run_id: str | None = None
    run_attempt: int | None = None
    trigger: str | None = None

    def __post_init__(self) -> None:
        _fits(self.repository, "--repository", _REPOSITORY, "Give owner/name.")
        _fits(
            self.signer_workflow,
            "--signer-workflow",
            _WORKFLOW,
            "Give owner/repository/.github/workflows/file.yml@refs/tags/v1.",
        )
        for value, option in (
            (self.signer_digest, "--signer-digest"),
            (self.source_digest, "--source-digest"),
        ):
            _fits(value, option, _COMMIT, "Give the full commit id, in lower case.")
        _fits(self.source_ref, "--source-ref", _REF, "Give a full ref, such as refs/heads/main.")
        _fits(self.run_id, "--run-id", _DIGITS, "Give the run's number.")
        if self.runner is not None and self.runner not in RUNNERS:
            raise InputError(
                f"{escape(self.runner)!r} is no kind of runner",
                where="--runner",
                mend=f"Give {' or '.join(RUNNERS)}.",
            )
        if self.run_attempt is not None and self.run_attempt < 1:
            raise InputError("attempts count from 1", where="--run-attempt")
        for text, option in ((self.issuer, "--issuer"), (self.trigger, "--trigger")):
            if text is not None and not text.strip():
                raise InputError("is empty", where=option)

    @property
    def named(self) -> tuple[str, ...]:
        """Names of what is expected, in the order of checking; empty when nothing is."""
        return tuple(name for name, _ in self.asked())

    def asked(self) -> tuple[tuple[str, str | int], ...]:
        """Return what is expected, as the certificate would say it: (name, value) pairs."""
        values: dict[str, str | int | None] = {
            name: getattr(self, attribute) for name, attribute in CLAIM_OF.items()
        }
        if all(value is None for value in values.values()):
            return ()
        if values["issuer"] is None:
            values["issuer"] = GITHUB_ISSUER
        for name in ("repository", "signer-workflow"):
            text = values[name]
            if isinstance(text, str) and not text.startswith("https://"):
                values[name] = GITHUB + text
        return tuple((name, value) for name, value in values.items() if value is not None)


@dataclass(frozen=True)
class CertificateClaims:
    """What the signing certificate says; its issuer wrote it, not the workflow.

    A claim that the certificate lacks is None. Addresses stand as they are there. May hold any
    text: escape it before showing it.

    Attributes:
        identity: The subject: a workflow's address, or an e-mail address.
        issuer: Of the identity token that the certificate was given for.
        repository: Address of the repository that the run belongs to.
        repository_id: Its number, which a renamed or re-created repository does not share.
        owner_id: The number of its owner.
        source_ref: The ref that the run was started for.
        source_digest: The commit of it.
        signer_workflow: Address and ref of the workflow file that signed.
        signer_digest: The commit of that file's repository.
        caller_workflow: Address and ref of the workflow that the run started from.
        trigger: The event that started the run.
        runner: `github-hosted` or `self-hosted`.
        visibility: Of the repository, when it signed.
        run_id: The run's number, as text.
        run_attempt: From 1.
        run_url: Address of the run and attempt.
    """

    identity: str | None = None
    issuer: str | None = None
    repository: str | None = None
    repository_id: str | None = None
    owner_id: str | None = None
    source_ref: str | None = None
    source_digest: str | None = None
    signer_workflow: str | None = None
    signer_digest: str | None = None
    caller_workflow: str | None = None
    trigger: str | None = None
    runner: str | None = None
    visibility: str | None = None
    run_id: str | None = None
    run_attempt: int | None = None
    run_url: str | None = None

    def get(self, name: str) -> str | int | None:
        """Return the claim that an expectation of this name is compared with."""
        value: str | int | None = getattr(self, CLAIM_OF[name])
        return value

    def to_json(self) -> dict[str, JSON]:
        """Return the claims by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class AttestationCheck:
    """What one check said.

    Attributes:
        name: One of `FIXED_CHECKS`, or the name of an expectation.
        status: `unsupported`: it can't be judged here, which says nothing about who made it;
            `not made`: an earlier check did not hold.
        message: One printable line.
    """

    name: str
    status: CheckStatus
    message: str = ""


@dataclass(frozen=True)
class AttestationResult:
    """What checking an attestation gave.

    Attributes:
        status: `verified`: every check held; `failed`; or `unsupported`, which is neither.
        checks: In order, `FIXED_CHECKS` first, then one for each expectation.
        artifact: The digest of the bytes that were checked, `sha256:…`.
        claims: None unless the signature and the certificate held.
        checked: Names of the claims that were compared with an expectation and equal it.
        only_claimed: Names of the claims that nothing was compared with.
        subject: The name that the attestation gives the artifact; None before that check held.
        signed_at: Unix seconds, by the transparency log or a timestamp authority; None when there
            is no single verified time.
    """

    status: Status
    checks: tuple[AttestationCheck, ...]
    artifact: str = ""
    claims: CertificateClaims | None = None
    checked: tuple[str, ...] = ()
    only_claimed: tuple[str, ...] = ()
    subject: str | None = None
    signed_at: int | None = None

    @property
    def verified(self) -> bool:
        """Whether every check held. Says nothing about identity unless `identity_checked`."""
        return self.status == "verified"

    @property
    def identity_checked(self) -> bool:
        """Whether it is verified and issuer, repository and signer workflow were compared."""
        return self.verified and set(self.checked) >= IDENTITY

    @property
    def problem(self) -> str:
        """What the first check that did not hold said; empty when verified."""
        bad = (check for check in self.checks if check.status in {"failed", "unsupported"})
        return next((f"{check.name}: {check.message}" for check in bad), "")

    def lines(self) -> list[str]:
        """Return the result as printable lines: the checks, then what is and isn't checked."""
        found = [
            f"{check.status:<11} {check.name}: {check.message}".rstrip(": ")
            for check in self.checks
        ]
        if self.claims is None:
            return found
        if self.signed_at is not None:
            found.append(f"signed at {utc(self.signed_at)}, by the log or a timestamp authority")
        if not self.checked:
            found.append("nothing was checked against the certificate: you named nothing to expect")
        rows = [("checked", name) for name in self.checked]
        rows += [("only claimed", name) for name in self.only_claimed]
        return found + [f"{kind:<12} {name}: {shown(self.claims.get(name))}" for kind, name in rows]

    def to_json(self) -> dict[str, JSON]:
        """Return the result for scripts; texts are as the file and certificate hold them."""
        return {
            "status": self.status,
            "checks": [
                {"name": check.name, "status": check.status, "message": check.message}
                for check in self.checks
            ],
            "artifact": self.artifact,
            "claims": None if self.claims is None else self.claims.to_json(),
            "checked": list(self.checked),
            "only_claimed": list(self.only_claimed),
            "identity_checked": self.identity_checked,
            "subject": self.subject,
            "signed_at": self.signed_at,
        }


def shown(value: object) -> str:
    """Return a value from a stranger as short printable text.

    >>> shown(None)
    'nothing'
    """
    if value is None:
        return "nothing"
    text = escape(str(value)[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def utc(seconds: float) -> str:
    """Return Unix seconds as a date and time.

    >>> utc(0)
    '1970-01-01 00:00:00 UTC'
    """
    try:
        moment = datetime.fromtimestamp(seconds, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return f"second {seconds:g}"
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _fits(value: str | None, option: str, pattern: re.Pattern[str], mend: str) -> None:
    if value is not None and not pattern.fullmatch(value):
        raise InputError(f"{shown(value)!r} can't match any certificate", where=option, mend=mend)
