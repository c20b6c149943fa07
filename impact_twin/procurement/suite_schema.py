"""Checks a suite's JSON files against their schemas."""

from __future__ import annotations

from functools import cache
from typing import Any

from impact_twin.canonical import read_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.resources import data_folder
from impact_twin.text import escape

_LONGEST = 200


def check_schema(name: str, data: JSON, where: str) -> None:
    """Check a file's content.

    Args:
        name: ``suite``, ``pair`` or ``golden``.
        data: The content.
        where: The file, for messages.

    Raises:
        InputError: the content doesn't fit; one line that names the file and the field.
    """
    from jsonschema.exceptions import best_match

    error = best_match(_validator(name).iter_errors(data))
    if error is not None:
        message = escape(error.message)
        if len(message) > _LONGEST:
            message = message[:_LONGEST] + "…"
        raise InputError(message, where=f"{where}: {_field(error.absolute_path)}")


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(read_strict(data_folder("schemas") / "1" / f"{name}.schema.json"))


def _field(path: Any) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return escape(text) or "the whole file"
