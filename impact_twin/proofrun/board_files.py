"""A folder of submissions: bundles, and the attestations beside them, found by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from impact_twin.canonical import MAX_BYTES, read_strict
from impact_twin.errors import InputError
from impact_twin.proofrun.attested import Attested, judge
from impact_twin.proofrun.board import Board, make_board
from impact_twin.proofrun.board_entry import Attest, Entry, make_entry, refused
from impact_twin.proofrun.provenance import Expectations
from impact_twin.proofrun.verify import Verification, Verifier
from impact_twin.reading import read_file
from impact_twin.text import escape

BUNDLE, ATTESTATION, PLAN_ATTESTATION = ".json", ".sigstore.json", ".plan.sigstore.json"
MAX_SIDE_FILE = 16 * 1024 * 1024
EVERY = "*"
"""In an expectations file: what is expected of every bundle."""


@dataclass(frozen=True)
class Expected:
    """What the keeper of a board expects of attestations.

    Attributes:
        files: By the bundle's file name, or `EVERY`: fields of `Expectations`.
        trusted_root: See `check_attestation`; None is the one that comes along.
    """

    files: Mapping[str, Mapping[str, str | int]]
    trusted_root: bytes | None = None

    def of(self, name: str) -> Expectations:
        """Return what is expected of one bundle; its own fields win over those of `EVERY`."""
        found = {**self.files.get(EVERY, {}), **self.files.get(name, {})}
        return Expectations(**found)  # type: ignore[arg-type]


def read_expected(path: Path | None, trusted_root: Path | None = None) -> Expected | None:
    """Read an expectations file and a trusted root; None without both.

    Raises:
        InputError: it can't be read, or holds something else than fields of `Expectations`.
    """
    if path is None and trusted_root is None:
        return None
    root = None if trusted_root is None else read_file(trusted_root, MAX_SIDE_FILE)
    value = {} if path is None else read_strict(path, max_bytes=MAX_SIDE_FILE)
    where = str(path)
    if not isinstance(value, dict):
        raise InputError("is no JSON object", where=where, mend='Write {"mine.json": {...}}.')
    known = {field.name for field in fields(Expectations)}
    for name, wanted in value.items():
        if not isinstance(wanted, dict):
            raise InputError(f"{escape(name)} is no JSON object", where=where)
        for field, item in wanted.items():
            if field not in known:
                raise InputError(
                    f"{escape(name)} expects {escape(field)!r}, which nothing has",
                    where=where,
                    mend=f"Use {', '.join(sorted(known))}.",
                )
            if not isinstance(item, int if field == "run_attempt" else str) or item is True:
                raise InputError(f"{escape(name)}: {field} has no such value", where=where)
    expected = Expected(value, root)
    for name in value:
        expected.of(name)
    return expected


def board_of_folder(folder: Path, verifier: Verifier, expected: Expected | None = None) -> Board:
    """Verify every bundle of a folder, one after the other, and rank them.

    Args:
        folder: The folder; what lies in folders within it is not read.
        verifier: With the suites that are known.
        expected: What is expected of attestations; None compares them with nothing.

    Raises:
        InputError: the folder can't be listed, or an attestation can't be checked here.
    """
    names = _names(folder)
    bundles = [name for name in names if not name.endswith(ATTESTATION)]
    notes = list(_strays(names, bundles, expected))
    wanted = Expected({}) if expected is None else expected
    return make_board(list(_entries(folder, names, bundles, verifier, wanted)), notes)


def _names(folder: Path) -> list[str]:
    try:
        found = os.listdir(folder)
    except OSError as err:
        raise InputError(
            f"can't be listed: {err.strerror}",
            where=str(folder),
            mend="Name the folder that holds the bundles.",
        ) from None
    return sorted(name for name in found if name.endswith(BUNDLE) and not name.startswith("."))


def _strays(names: list[str], bundles: list[str], expected: Expected | None) -> Iterator[str]:
    held = set(bundles)
    for name in names:
        if name.endswith(ATTESTATION) and _bundle_of(name) not in held:
            yield f"{name} attests nothing here: {_bundle_of(name)} is missing."
    attested = any(name.endswith(ATTESTATION) and _bundle_of(name) in held for name in names)
    if attested and (expected is None or not expected.files):
        yield (
            "Attestations were compared with nothing (--expect names what to expect), so they "
            "raise no tier."
        )
    for name in () if expected is None else expected.files:
        if name != EVERY and name not in held:
            yield f"Something is expected of {name}, which is not here."


def _bundle_of(name: str) -> str:
    for ending in (PLAN_ATTESTATION, ATTESTATION):
        if name.endswith(ending):
            return name.removesuffix(ending) + BUNDLE
    return name


def _entries(
    folder: Path, names: list[str], bundles: list[str], verifier: Verifier, expected: Expected
) -> Iterator[Entry]:
    held = set(names)
    for name in bundles:
        try:
            data = read_file(folder / name, MAX_BYTES, follow=False)
            attest = _attest(folder, name, held, expected)
        except InputError as err:
            yield refused(name, err.what)
            continue
        yield make_entry(name, data, verifier, attest)


def _attest(folder: Path, name: str, held: set[str], expected: Expected) -> Attest | None:
    stem = name.removesuffix(BUNDLE)
    if stem + ATTESTATION not in held:
        return None
    own = read_file(folder / (stem + ATTESTATION), MAX_SIDE_FILE, follow=False)
    plan = None
    if stem + PLAN_ATTESTATION in held:
        plan = read_file(folder / (stem + PLAN_ATTESTATION), MAX_SIDE_FILE, follow=False)

    def attest(data: bytes, verification: Verification) -> Attested:
        return judge(
            data,
            verification,
            own,
            expected.of(name),
            plan_attestation=plan,
            trusted_root=expected.trusted_root,
        )

    return attest
