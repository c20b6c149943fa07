"""Verify the bundles that a change adds or alters under submissions/, and no others.

    python verify_submissions.py CHECKOUT BASE HEAD

Only git's object store is read, never the working tree: a file may have any name, be a link, or
hide behind attributes. Nothing from the change is run. Exit code: 0 every file held; 1 one did not;
2 wrong usage.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from impact_twin.canonical import MAX_BYTES, loads_strict
from impact_twin.proofrun.provenance import MAX_BYTES as MAX_ATTESTATION
from impact_twin.proofrun.provenance import check_attestation
from impact_twin.proofrun.provenance_tiers import registered_plan

FOLDER = "submissions/"
MAX_FILES = 20
README = f"{FOLDER}README.md"
ATTESTATION, PLAN_ATTESTATION = ".sigstore.json", ".plan.sigstore.json"
_NAME = re.compile(
    r"submissions/([a-z0-9][a-z0-9_-]{0,79})(\.json|\.sigstore\.json|\.plan\.sigstore\.json)"
)
_REGULAR = b"100644"


class RefusedError(Exception):
    """A file can't be taken; the text says why, in ASCII."""


@dataclass(frozen=True)
class Store:
    """The object store of a checkout.

    Attributes:
        folder: The checkout.
        head: The commit that holds the change.
    """

    folder: Path
    head: str

    def changed(self, base: str) -> list[str]:
        """Return the paths under `FOLDER` that `head` adds or alters, and refuse odd ones.

        Raises:
            RefusedError: a path is no plain file with a plain name, or there are too many.
        """
        raw = self._git(
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--diff-filter=d",
            base,
            self.head,
            "--",
            FOLDER,
        )
        fields = raw.split(b"\0")[:-1]
        found = list(_entries(fields))
        if len(found) > MAX_FILES:
            raise RefusedError(f"{len(found)} files changed; send at most {MAX_FILES} at once")
        return [_plain(mode, path) for mode, path in found]

    def read(self, path: str, limit: int) -> bytes | None:
        """Return a file of the head; None when there is none.

        Raises:
            RefusedError: it is larger than `limit` bytes.
        """
        listed = self._git("ls-tree", "-z", self.head, "--", path)
        if not listed:
            return None
        mode, kind, name = listed.split(b"\t", 1)[0].split(b" ")
        if kind != b"blob" or mode != _REGULAR:
            raise RefusedError(f"{path}: no plain file")
        size = int(self._git("cat-file", "-s", name.decode("ascii")))
        if size > limit:
            raise RefusedError(f"{path}: {size} bytes; at most {limit} are read")
        return self._git("cat-file", "blob", name.decode("ascii"))

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603


def main(arguments: list[str]) -> int:
    """Verify what changed; return the exit code."""
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    store = Store(Path(arguments[0]), arguments[2])
    try:
        paths = store.changed(arguments[1])
    except RefusedError as error:
        print(f"refused: {error}")
        return 1
    stems = sorted({_stem(path) for path in paths if path != README})
    print(f"{len(stems)} submissions changed")
    return max([_verify(store, stem) for stem in stems], default=0)


def _entries(fields: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for header, path in zip(fields[::2], fields[1::2], strict=True):
        yield header.split(b" ")[1], path


def _plain(mode: bytes, path: bytes) -> str:
    name = path.decode("utf-8", "backslashreplace")
    if name == README and mode == _REGULAR:
        return name
    if not _NAME.fullmatch(name):
        raise RefusedError(
            f"{json.dumps(name)} is no name for a submission: use lower-case letters, digits, "
            f"'-' and '_', and end it .json, {ATTESTATION} or {PLAN_ATTESTATION}"
        )
    if mode != _REGULAR:
        raise RefusedError(f"{name} is no plain file")
    return name


def _stem(path: str) -> str:
    match = _NAME.fullmatch(path)
    assert match is not None
    return match[1]


def _verify(store: Store, stem: str) -> int:
    path = f"{FOLDER}{stem}.json"
    print(f"== {path}", flush=True)
    try:
        bundle = store.read(path, MAX_BYTES)
        if bundle is None:
            raise RefusedError(f"{path} is missing: an attestation alone says nothing")
        code = _ladder(bundle)
        return code or _attestations(store, stem, bundle)
    except RefusedError as error:
        print(f"refused: {error}")
        return 1


def _ladder(bundle: bytes) -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bundle.json"
        file.write_bytes(bundle)
        command = [sys.executable, "-m", "impact_twin", "verify", str(file)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE)  # noqa: S603
    _show(done.stdout.decode("utf-8", "replace").splitlines())
    return 1 if done.returncode else 0


def _attestations(store: Store, stem: str, bundle: bytes) -> int:
    """Check the attestations beside a bundle; who is expected, a reader of the board says."""
    worst = 0
    for ending in (ATTESTATION, PLAN_ATTESTATION):
        data = store.read(f"{FOLDER}{stem}{ending}", MAX_ATTESTATION)
        if data is None:
            continue
        about = bundle
        if ending == PLAN_ATTESTATION:
            about = registered_plan(loads_strict(bundle)["report"])
        result = check_attestation(about, data)
        _show([f"{stem}{ending}: {result.status}", *result.lines()])
        worst = max(worst, 1 if result.status == "failed" else 0)
    return worst


def _show(lines: list[str]) -> None:
    """Print a stranger's text so that the runner takes no line of it for a command."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}")
    for line in lines:
        print(line.encode("ascii", "backslashreplace").decode("ascii"))
    print(f"::{token}::", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
