"""Canonical JSON (RFC 8785), its SHA-256 digests, and a strict reader for files from others."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

import rfc8785

from impact_twin.errors import InputError
from impact_twin.reading import read_file

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 64
MAX_SAFE_INTEGER = 2**53 - 1

_BRACKET = re.compile(r"[\[\]{}]")


def canonical_bytes(value: object) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        InputError: the value has no canonical form (NaN, an integer beyond 2^53, a lone surrogate).
    """
    try:
        return rfc8785.dumps(value)  # type: ignore[no-any-return, arg-type, unused-ignore]
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError) as err:
        raise InputError(f"the value has no canonical JSON form: {type(err).__name__}") from None


def digest(value: object) -> str:
    """Return ``sha256:<hex>`` of a JSON value's canonical bytes.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    return digest_bytes(canonical_bytes(value))


def digest_bytes(data: bytes) -> str:
    """Return ``sha256:<hex>`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def loads_strict(
    data: bytes, *, where: str = "", max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> Any:
    """Parse JSON that a stranger wrote.

    Args:
        data: The bytes; strict UTF-8 without a byte-order mark.
        where: What the bytes are, for messages.
        max_bytes: Size cap, in bytes.
        max_depth: Cap on nested arrays and objects.

    Raises:
        InputError: too large, not UTF-8, not JSON, too deep, a duplicate key, a number that is NaN,
            infinite or an integer beyond 2^53, or a lone surrogate.
    """
    if len(data) > max_bytes:
        raise InputError(f"larger than {max_bytes} bytes", where=where)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as err:
        raise InputError(f"not UTF-8 at byte {err.start}", where=where) from None
    _check_depth(text, where, max_depth)

    def no_constant(name: str) -> NoReturn:
        raise InputError(f"{name} is not a JSON number", where=where)

    def integer(digits: str) -> int:
        if len(digits) > 17 or abs(int(digits)) > MAX_SAFE_INTEGER:
            raise InputError("an integer beyond 2^53 - 1", where=where)
        return int(digits)

    def real(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise InputError("a number beyond double precision", where=where)
        return number

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise InputError("a key occurs twice in one object", where=where)
        return found

    try:
        value = json.loads(
            text,
            parse_constant=no_constant,
            parse_int=integer,
            parse_float=real,
            object_pairs_hook=pairs,
        )
    except json.JSONDecodeError as err:
        raise InputError(
            f"not JSON: {err.msg} at line {err.lineno}, column {err.colno}", where=where
        ) from None
    except RecursionError:
        raise InputError("nested too deeply", where=where) from None
    if "\\u" in text and _has_surrogate(value):
        raise InputError("a lone surrogate in a string", where=where)
    return value


def read_strict(path: Path, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Read a JSON file strictly; see `loads_strict`. Never reads more than the cap.

    Raises:
        InputError: the file can't be read or its content is refused.
    """
    data = read_file(path, max_bytes)
    return loads_strict(data, where=str(path), max_bytes=max_bytes, max_depth=max_depth)


def outside_strings(text: str) -> list[str]:
    """Return the pieces of a JSON text that stand before, between and behind its strings.

    No regular expression for a string: one that may hold escapes keeps a place to go back to for
    each of them, and so takes a hundred times the text's memory.
    """
    return split_strings(text)[::2]


def split_strings(text: str) -> list[str]:
    """Return a JSON text in pieces: outside of strings, inside of one, outside again, and so on.

    >>> split_strings('[1,"a,b"]')
    ['[1,', 'a,b', ']']
    """
    # Of the same length, but with no quote that is not the start or the end of a string.
    mask = text.replace("\\\\", "__").replace('\\"', "__")
    pieces, start = [], 0
    for part in mask.split('"'):
        pieces.append(text[start : start + len(part)])
        start += len(part) + 1
    return pieces


def _check_depth(text: str, where: str, max_depth: int) -> None:
    depth = 0
    for match in _BRACKET.finditer("".join(outside_strings(text))):
        mark = match.group()
        if mark in "[{":
            depth += 1
            if depth > max_depth:
                raise InputError(f"nested deeper than {max_depth}", where=where)
        elif mark in "]}":
            depth -= 1


def _has_surrogate(value: object) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, dict):
        return any(_has_surrogate(key) or _has_surrogate(item) for key, item in value.items())
    return isinstance(value, list) and any(_has_surrogate(item) for item in value)
