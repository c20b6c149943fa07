"""Reads the files of a suite's folder: data only, inside the folder, up to a size."""

from __future__ import annotations

import re
from pathlib import Path

from impact_twin.canonical import loads_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.text import escape

MAX_FILE = 256 * 1024
MAX_TOTAL = 16 * 1024 * 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class SuiteFolder:
    """A suite's folder. It counts what it reads and refuses what leads outside.

    Args:
        root: The folder.
        links: Whether symlinks may be followed. Only for suites of the installed package: some
            installers link every file.

    Raises:
        InputError: there is no such folder.
    """

    def __init__(self, root: Path, *, links: bool = False) -> None:
        if not root.is_dir() or (root.is_symlink() and not links):
            raise InputError(
                "is not a folder of its own" if root.exists() else "there is no such folder",
                where=escape(str(root)),
                mend="Give a folder that holds suite.json.",
            )
        self.root = root
        self._links = links
        self._left = MAX_TOTAL

    def read(self, name: str) -> bytes:
        """Return a file's bytes.

        Args:
            name: Path below the root, with forward slashes; plain names only.

        Raises:
            InputError: the name leads outside or through a symlink, or the file is missing, is no
                regular file, or is too large.
        """
        path = self._path(name)
        try:
            with path.open("rb") as handle:
                data = handle.read(MAX_FILE + 1)
        except OSError as err:
            raise InputError(f"can't be read: {err.strerror}", where=self.where(name)) from None
        self._left -= len(data)
        if len(data) > MAX_FILE or self._left < 0:
            cap = MAX_FILE if len(data) > MAX_FILE else MAX_TOTAL
            of = "the file" if len(data) > MAX_FILE else "the suite"
            raise InputError(f"{of} is larger than {cap} bytes", where=self.where(name))
        return data

    def text(self, name: str) -> str:
        """Return a file's text: strict UTF-8 without a byte-order mark, line ends as they are.

        Raises:
            InputError: as `read`, or the text is no such UTF-8.
        """
        data = self.read(name)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as err:
            raise InputError(f"not UTF-8 at byte {err.start}", where=self.where(name)) from None
        if text.startswith("\ufeff"):
            raise InputError("starts with a byte-order mark", where=self.where(name))
        return text

    def json(self, name: str) -> JSON:
        """Return a JSON file's value, read strictly.

        Raises:
            InputError: as `read`, or the file is no strict JSON.
        """
        return loads_strict(self.read(name), where=self.where(name), max_bytes=MAX_FILE)

    def names(self, folder: str, suffix: str) -> list[str]:
        """Return a subfolder's file names with a suffix, sorted; empty when there is none."""
        path = self._path(folder)
        if not path.is_dir():
            return []
        return sorted(item.name for item in path.iterdir() if item.name.endswith(suffix))

    def where(self, name: str) -> str:
        """Return a path for messages."""
        return escape(f"{self.root.name}/{name}")

    def _path(self, name: str) -> Path:
        path = self.root
        for part in name.split("/"):
            if not _NAME.fullmatch(part):
                raise InputError(
                    "the path leads outside or has a name that isn't plain",
                    where=self.where(name),
                    mend="Use names of letters, digits, dots, dashes and underscores.",
                )
            path = path / part
            if path.is_symlink() and not self._links:
                raise InputError("is a symlink", where=self.where(name), mend="Copy the file.")
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError("is no regular file", where=self.where(name))
        return path
