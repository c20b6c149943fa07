"""The canonical form of values that were parsed from JSON, at the speed of C.

RFC 8785 in pure Python takes most of the time of verifying. Python's own encoder writes the same
bytes but for some numbers, which are spelled again here, and for two rare things, which are left to
the slow way.
"""

from __future__ import annotations

import json
import re

from impact_twin.canonical import canonical_bytes, digest_bytes, split_strings
from impact_twin.procurement.model import JSON

_EXPONENT = re.compile(r"([0-9])(?:\.([0-9]+))?e([-+][0-9]+)")
_WHOLE = re.compile(r"\.0(?![0-9])")
_MINUS_ZERO = re.compile(r"-0(?![.0-9])")
# Left to the slow way: a key may hold a character beyond U+FFFF, and sorts otherwise then; an
# integer may lie beyond 2^53, and has no canonical form then.
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_LONG = re.compile(r"(?<![.0-9])[0-9]{16}")
# Stands for a string between what is no string; JSON has none outside of strings.
_GAP = "\0"


def canonical_parsed(value: JSON) -> bytes:
    """Return the RFC 8785 bytes of a JSON value whose keys are all strings, as parsers give it.

    Raises:
        InputError: it has no canonical form.

    >>> canonical_parsed({"b": [1.5, 1.0, 1e-7], "a": None})
    b'{"a":null,"b":[1.5,1,1e-7]}'
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        spelled = None if _ASTRAL.search(text) else _spell_numbers(text)
    except (ValueError, TypeError, RecursionError):
        spelled = None
    return canonical_bytes(value) if spelled is None else spelled


def digest_parsed(value: JSON) -> str:
    """Return ``sha256:<hex>`` of `canonical_parsed`."""
    return digest_bytes(canonical_parsed(value))


def _spell_numbers(text: str) -> bytes | None:
    """Return Python's JSON with its numbers as RFC 8785 writes them; None for the slow way."""
    parts = split_strings(text)
    between = _GAP.join(parts[::2])
    if _LONG.search(between):
        return None
    spelled = _WHOLE.sub("", _EXPONENT.sub(_spell, between))
    spelled = _MINUS_ZERO.sub("0", spelled)
    if spelled != between:
        parts[::2] = spelled.split(_GAP)
        text = '"'.join(parts)
    return text.encode("utf-8")


def _spell(match: re.Match[str]) -> str:
    """Spell a number that Python writes with an exponent (1e-07) as ECMAScript does (1e-7)."""
    first, fraction, power = match[1], match[2] or "", int(match[3])
    if -7 < power < 0:
        return "0." + "0" * (-power - 1) + first + fraction
    if 0 <= power < 21:
        return (first + fraction).ljust(power + 1, "0")
    return f"{first}{'.' if fraction else ''}{fraction}e{power:+d}"
