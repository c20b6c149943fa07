"""The canonical form of values that were parsed from JSON, at the speed of C.

RFC 8785 in pure Python takes most of the time of verifying. Python's own encoder writes the same
bytes but for some numbers, which are spelled again here, and for two rare things, which are left to
the slow way.
"""

from __future__ import annotations

import json
import re

from impact_twin.canonical import canonical_bytes, digest_bytes
from impact_twin.procurement.model import JSON

_STRINGS = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")')
# How the numbers end that the two spell differently: with an exponent (1e-07), or without a
# fraction (1.0). To look for the end is quick, since it starts with a letter or a point.
_ENDS = (re.compile(r"e[-+][0-9]+"), re.compile(r"\.0(?![0-9])"))
_START = re.compile(r"-?[0-9]+(?:\.[0-9]+)?\Z")
_LONGEST = 40
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
    parts = _STRINGS.split(text)
    between = _GAP.join(parts[::2])
    if _LONG.search(between):
        return None
    spelled = between
    for end in _ENDS:
        spelled = _spell_those(end, spelled)
    if spelled is not between:
        parts[::2] = spelled.split(_GAP)
        text = "".join(parts)
    return text.encode("utf-8")


def _spell_those(end: re.Pattern[str], text: str) -> str:
    """Spell the numbers again that end like this; returns the same object when there are none."""
    pieces, done = [], 0
    for match in end.finditer(text):
        head = text[max(done, match.start() - _LONGEST) : match.start()]
        found = _START.search(head)
        assert found is not None
        start = match.start() - len(found.group())
        number = float(text[start : match.end()])
        pieces += [text[done:start], canonical_bytes(number).decode("ascii")]
        done = match.end()
    return "".join((*pieces, text[done:])) if pieces else text
