"""Reports of older schemas, brought to the current one step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from impact_twin.canonical import digest, digest_bytes
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.report.cases import trace_json
from impact_twin.text import escape

Step = Callable[[dict[str, JSON]], dict[str, JSON]]

STEPS: Mapping[int, Step] = {}
"""Step by the version that it starts from; each gives the next version. Nothing is older than 1."""


def migrate(
    report: dict[str, JSON],
    *,
    current: int,
    where: str = "",
    steps: Mapping[int, Step] = STEPS,
    check: Callable[[Mapping[str, JSON]], None] | None = None,
) -> dict[str, JSON]:
    """Return a report in the current schema.

    Args:
        report: A JSON object with `schema_version`, as stored.
        current: The current schema version.
        where: What it is, for messages.
        steps: Step by the version that it starts from.
        check: Checks the digests of an older report before its first step, since a step changes
            what they cover; None is `check_digests`.

    Raises:
        InputError: the version is no whole number, is newer than `current`, or is older than the
            steps reach; or a digest of the stored report is wrong.
    """
    version = report.get("schema_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InputError(
            "schema_version is no version number",
            where=where,
            mend="It was changed after impact-twin wrote it.",
        )
    if version > current:
        raise InputError(
            f"has schema_version {version}; this version reads up to {current}",
            where=where,
            mend="Use a newer impact-twin.",
        )
    if version < current:
        (check or (lambda stored: check_digests(stored, where=where)))(report)
    while version < current:
        if version not in steps:
            raise InputError(
                f"has schema_version {version}, which can no longer be read",
                where=where,
                mend="Use an older impact-twin.",
            )
        report = steps[version](report)
        version += 1
        report = {**report, "schema_version": version}
    return report


def check_digests(report: Mapping[str, JSON], *, where: str = "") -> None:
    """Refuse a report in which a trace or a text isn't what its digest says.

    Raises:
        InputError: a digest is wrong, or the report isn't of the form that has them.
    """
    try:
        for name, text in report["texts"].items():
            if digest_bytes(text.encode("utf-8")) != name:
                raise InputError(
                    f"texts: {escape(name)} is not the digest of its text", where=where
                )
        for name, entry in report["traces"].items():
            if digest(trace_json(entry)) != name:
                raise InputError(
                    f"traces: {escape(name)} is not the digest of its trace", where=where
                )
    except (KeyError, TypeError, AttributeError):
        raise InputError("traces and texts can't be read", where=where) from None
