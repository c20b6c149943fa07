"""`impact-twin verify`: check bundles that others have made."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from impact_twin.canonical import MAX_BYTES, MAX_DEPTH
from impact_twin.cli.output import say, terminal_width
from impact_twin.errors import InputError
from impact_twin.reading import read_file, read_standard_input
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.proofrun.attested import Attested
    from impact_twin.proofrun.provenance import Expectations
    from impact_twin.proofrun.tiers import Tier
    from impact_twin.proofrun.verify import Verification, Verifier

KIND = "impact-twin/verification"
# No attestation and no trusted root is near as long.
MAX_SIDE_FILE = 16 * 1024 * 1024

_OPTIONS = (
    click.option("--repository", metavar="OWNER/NAME", help="Expect this repository."),
    click.option("--signer-workflow", metavar="PATH@REF", help="Expect this workflow file."),
    click.option("--signer-digest", metavar="SHA", help="Expect this commit of that file."),
    click.option("--source-ref", metavar="REF", help="Expect this ref of the repository."),
    click.option("--source-digest", metavar="SHA", help="Expect this commit of the repository."),
    click.option("--issuer", metavar="URL", help="Expect this issuer.  [GitHub Actions]"),
    click.option("--runner", metavar="KIND", help="Expect github-hosted or self-hosted."),
    click.option("--run-id", metavar="ID", help="Expect this run."),
    click.option("--run-attempt", type=int, metavar="N", help="Expect this attempt of the run."),
    click.option("--trigger", metavar="EVENT", help="Expect this event."),
)


def _expectation_options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@click.option("--suite", "folder", metavar="DIR", help="Also accept this suite of your own.")
@click.option("--json", "as_json", is_flag=True, help="Write the results as JSON.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1, 2**32),
    default=MAX_BYTES,
    show_default=True,
    help="Refuse larger files.",
)
@click.option(
    "--max-depth",
    type=click.IntRange(1, 256),
    default=MAX_DEPTH,
    show_default=True,
    help="Refuse JSON that is nested deeper.",
)
@click.option("--attestation", metavar="FILE", help="Sigstore attestation of the one bundle.")
@click.option("--plan-attestation", metavar="FILE", help="Sigstore attestation of its plan.json.")
@click.option("--trusted-root", metavar="FILE", help="Another Sigstore trusted root than ours.")
@_expectation_options
def verify(
    *,
    files: tuple[str, ...],
    folder: str | None,
    as_json: bool,
    max_bytes: int,
    max_depth: int,
    attestation: str | None,
    plan_attestation: str | None,
    trusted_root: str | None,
    **expected: Any,
) -> int:
    """Verify bundles. FILES are bundle files; '-' is standard input.

    A glob may take x.sigstore.json and x.plan.sigstore.json along with x.json: they are left out.

    Each file climbs the same ladder: reading, schema, digests, figures, verdicts, replay,
    provenance. The first check that fails ends it. One bad file does not stop the others.

    With --attestation, who made the file is compared with what YOU expect, never with what the file
    says of itself; without expectations, it only tells what the certificate claims.

    \b
    Exit code: 0 every file held; 1 a file failed; 2 wrong usage, or a path that can't be opened
    (which outranks 1).
    """  # noqa: D301 (click's mark for lines to keep)
    side = _side(files, attestation, plan_attestation, trusted_root, expected)
    verifier = _verifier(folder, max_bytes, max_depth)
    page: _Page = _JsonPage() if as_json else _TextPage()
    worst = 0
    for name in files:
        if _attests_another(name, files):
            page.left_out(name)
            continue
        try:
            data = _read(name, max_bytes)
        except InputError as err:
            page.unreadable(name, err)
            worst = max(worst, err.exit_code)
            continue
        verification = verifier.verify(data)
        attested = None if side is None else side.judge(data, verification)
        page.verified(name, verification, attested)
        held = verification.valid and (attested is None or attested.held)
        worst = max(worst, 0 if held else 1)
    page.end()
    return worst


@dataclass(frozen=True)
class _Side:
    """The files beside a bundle, read, and what is expected of them."""

    attestation: bytes
    plan: bytes | None
    trusted_root: bytes | None
    expectations: Expectations

    def judge(self, data: bytes, verification: Verification) -> Attested:
        from impact_twin.proofrun.attested import judge

        return judge(
            data,
            verification,
            self.attestation,
            self.expectations,
            plan_attestation=self.plan,
            trusted_root=self.trusted_root,
        )


def _side(
    files: tuple[str, ...],
    attestation: str | None,
    plan: str | None,
    trusted_root: str | None,
    expected: dict[str, Any],
) -> _Side | None:
    """Read the attestation with all that belongs to it; None when there is none.

    Raises:
        InputError: options without an attestation, an attestation of several files, a file that
            can't be opened, or an expectation that can't match anything.
    """
    if attestation is None:
        others = {"plan_attestation": plan, "trusted_root": trusted_root, **expected}
        for name, value in others.items():
            if value is not None:
                raise InputError(
                    "it only goes with --attestation",
                    where=f"--{name.replace('_', '-')}",
                    mend="Add --attestation, or leave it out.",
                )
        return None
    if len(files) != 1:
        raise InputError(
            f"it belongs to one bundle, but {len(files)} files are named",
            where="--attestation",
            mend="Verify them one by one.",
        )
    from impact_twin.proofrun.provenance import Expectations

    return _Side(
        attestation=_read(attestation, MAX_SIDE_FILE),
        plan=None if plan is None else _read(plan, MAX_SIDE_FILE),
        trusted_root=None if trusted_root is None else _read(trusted_root, MAX_SIDE_FILE),
        expectations=Expectations(**expected),
    )


class _Page(Protocol):
    """Shows results."""

    def verified(self, name: str, verification: Verification, attested: Attested | None) -> None:
        """Show what verifying a file gave."""

    def unreadable(self, name: str, err: InputError) -> None:
        """Show that a file can't be opened."""

    def left_out(self, name: str) -> None:
        """Show that a file is the attestation of another one."""

    def end(self) -> None:
        """Show what belongs at the end."""


class _TextPage:
    """Shows results on a terminal as they come."""

    def __init__(self) -> None:
        self._width = terminal_width()
        self._tiers: list[Tier] = []

    def verified(self, name: str, verification: Verification, attested: Attested | None) -> None:
        from impact_twin.proofrun.outcome_text import verification_lines

        for line in verification_lines(name, verification, attested, width=self._width):
            say(line)
        say("")
        tier = verification.tier if attested is None else attested.tier
        if tier is not None:
            self._tiers.append(tier)

    def unreadable(self, name: str, err: InputError) -> None:
        del name
        say(f"Error: {escape(err.line())}", sys.stderr)

    def left_out(self, name: str) -> None:
        say(f"{escape(name)}: left out, an attestation; compare it by --attestation\n")

    def end(self) -> None:
        from impact_twin.proofrun.outcome_text import tier_lines

        for line in tier_lines(self._tiers, width=self._width):
            say(line)


class _JsonPage:
    """Collects results and writes them as one JSON object."""

    def __init__(self) -> None:
        self._files: list[dict[str, Any]] = []
        self._left_out: list[str] = []

    def verified(self, name: str, verification: Verification, attested: Attested | None) -> None:
        from impact_twin.proofrun.outcome_text import verification_json

        self._files.append({**verification_json(name, verification, attested), "error": None})

    def unreadable(self, name: str, err: InputError) -> None:
        self._files.append({"file": name, "verified": False, "error": err.line()})

    def left_out(self, name: str) -> None:
        self._left_out.append(name)

    def end(self) -> None:
        found = {
            "kind": KIND,
            "schema_version": 1,
            "files": self._files,
            "left_out": self._left_out,
        }
        say(json.dumps(found, indent=1))


def _verifier(folder: str | None, max_bytes: int, max_depth: int) -> Verifier:
    from impact_twin.procurement.suite import bundled_suites, load_suite
    from impact_twin.proofrun.reading import ReadLimits
    from impact_twin.proofrun.verify import Verifier

    suites = bundled_suites() if folder is None else (*bundled_suites(), load_suite(Path(folder)))
    return Verifier(suites, ReadLimits(max_bytes=max_bytes, max_depth=max_depth))


def _attests_another(name: str, files: tuple[str, ...]) -> bool:
    """Whether a file is named as the attestation of another of the files."""
    for ending in (".plan.sigstore.json", ".sigstore.json"):
        if name.endswith(ending):
            return name.removesuffix(ending) + ".json" in files
    return False


def _read(name: str, most: int) -> bytes:
    return read_standard_input(most) if name == "-" else read_file(name, most)
