"""Turns values that a model made up into JSON values that can be stored and digested."""

from __future__ import annotations

import math
from typing import Any

from impact_twin.canonical import MAX_SAFE_INTEGER
from impact_twin.text import storable

_DEEPEST = 40
_LONGEST = 10_000


def plain(value: Any, depth: int = 0) -> Any:
    """Return a JSON value: odd numbers and objects become text, lone surrogates U+FFFD.

    >>> plain({"a": float("nan"), "b": (1, 2**60)})
    {'a': 'nan', 'b': [1, '1152921504606846976']}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, dict | list | tuple) and depth < _DEEPEST:
        if isinstance(value, dict):
            return {storable(str(key)): plain(item, depth + 1) for key, item in value.items()}
        return [plain(item, depth + 1) for item in value]
    return storable(value if isinstance(value, str) else str(value)[:_LONGEST])


def _number(value: int | float) -> int | float | str:
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    return value if math.isfinite(value) else repr(value)
