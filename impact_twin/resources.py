"""Finds the data folders: inside an installed package first, then beside pyproject.toml."""

from __future__ import annotations

from pathlib import Path

from impact_twin.errors import InputError


def data_folder(name: str) -> Path:
    """Return the folder ``pairs`` or ``schemas``.

    Raises:
        InputError: the installation carries no such folder.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise InputError(f"the folder {name!r} is missing", mend="Install impact-twin again.")
