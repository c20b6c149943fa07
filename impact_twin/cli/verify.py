"""`impact-twin verify`: check bundles that others have made."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from impact_twin.canonical import MAX_BYTES, MAX_DEPTH
from impact_twin.cli.output import say, terminal_width
from impact_twin.errors import InputError
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.proofrun.tiers import Tier
    from impact_twin.proofrun.verify import Verification, Verifier

KIND = "impact-twin/verification"


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
def verify(
    files: tuple[str, ...], folder: str | None, as_json: bool, max_bytes: int, max_depth: int
) -> int:
    """Verify bundles. FILES are bundle files; '-' is standard input.

    Each file climbs the same ladder: reading, schema, digests, figures, verdicts, replay,
    provenance. The first check that fails ends it. One bad file does not stop the others.

    \b
    Exit code: 0 every file held; 1 a file failed; 2 wrong usage, or a path that can't be opened
    (which outranks 1).
    """  # noqa: D301 (click's mark for lines to keep)
    verifier = _verifier(folder, max_bytes, max_depth)
    page = _JsonPage() if as_json else _TextPage()
    worst = 0
    for name in files:
        try:
            data = _read(name, max_bytes)
        except InputError as err:
            page.unreadable(name, err)
            worst = max(worst, err.exit_code)
            continue
        verification = verifier.verify(data)
        page.verified(name, verification)
        worst = max(worst, 0 if verification.valid else 1)
    page.end()
    return worst


class _TextPage:
    """Shows results on a terminal as they come."""

    def __init__(self) -> None:
        self._width = terminal_width()
        self._tiers: list[Tier] = []

    def verified(self, name: str, verification: Verification) -> None:
        from impact_twin.proofrun.outcome_text import verification_lines

        for line in verification_lines(name, verification, width=self._width):
            say(line)
        say("")
        if verification.tier is not None:
            self._tiers.append(verification.tier)

    def unreadable(self, name: str, err: InputError) -> None:
        del name
        say(f"Error: {escape(err.line())}", sys.stderr)

    def end(self) -> None:
        from impact_twin.proofrun.outcome_text import tier_lines

        for line in tier_lines(self._tiers, width=self._width):
            say(line)


class _JsonPage:
    """Collects results and writes them as one JSON object."""

    def __init__(self) -> None:
        self._files: list[dict[str, Any]] = []

    def verified(self, name: str, verification: Verification) -> None:
        from impact_twin.proofrun.outcome_text import verification_json

        self._files.append({**verification_json(name, verification), "error": None})

    def unreadable(self, name: str, err: InputError) -> None:
        self._files.append({"file": name, "verified": False, "error": err.line()})

    def end(self) -> None:
        say(json.dumps({"kind": KIND, "schema_version": 1, "files": self._files}, indent=1))


def _verifier(folder: str | None, max_bytes: int, max_depth: int) -> Verifier:
    from impact_twin.procurement.suite import bundled_suites, load_suite
    from impact_twin.proofrun.reading import ReadLimits
    from impact_twin.proofrun.verify import Verifier

    suites = bundled_suites() if folder is None else (*bundled_suites(), load_suite(Path(folder)))
    return Verifier(suites, ReadLimits(max_bytes=max_bytes, max_depth=max_depth))


def _read(name: str, max_bytes: int) -> bytes:
    """Return a file's bytes, at most one more than allowed.

    Raises:
        InputError: it can't be opened, or is no regular file (which might never end).
    """
    if name == "-":
        return sys.stdin.buffer.read(max_bytes + 1)
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        handle = os.open(
            name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise InputError("is no regular file", where=name, mend="Name a bundle's file.")
            return stream.read(max_bytes + 1)
    except OSError as err:
        raise InputError(f"can't be opened: {err.strerror}", where=name) from None
    except ValueError:
        raise InputError("is no file name", where=name) from None
