"""Checks a JSON value against one of the leaderboard's schemas."""

from __future__ import annotations

import functools
import json
from typing import Any

from impact_twin.errors import InputError
from impact_twin.resources import data_folder


def check(value: Any, name: str, *, where: str) -> None:
    """Check a value against ``schemas/1/leaderboard-<name>.schema.json``.

    Raises:
        InputError: The value doesn't conform; the message names the first field that fails.
    """
    error = next(_validator(name).iter_errors(value), None)
    if error is None:
        return
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
    found = error.message if len(error.message) <= 200 else error.message[:200] + " ..."
    raise InputError(f"not a valid {name}: {found}", where=f"{where}{path}")


@functools.cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    # JSON Schema takes 1.0 for an integer; what counts repeats or turns here can't be a float.
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    path = data_folder("schemas") / "1" / f"leaderboard-{name}.schema.json"
    strict: Any = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    return strict(json.loads(path.read_text(encoding="utf-8")))


def _is_integer(checker: object, value: object) -> bool:
    del checker
    return isinstance(value, int) and not isinstance(value, bool)
