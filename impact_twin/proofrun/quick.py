"""The canonical form of values that were parsed from JSON, at the speed of C.

RFC 8785 in pure Python takes most of the time of verifying. Python's own encoder writes the same
bytes unless a number or a key is of a rare kind, and what it wrote shows whether one is.
"""

from __future__ import annotations

import json
import re

from impact_twin.canonical import canonical_bytes, digest_bytes
from impact_twin.procurement.model import JSON

# Where the two may differ: a float without a fraction or with an exponent (1.0, 1e-07), an integer
# that may lie beyond 2^53, a key with a character beyond U+FFFF (they sort otherwise).
_NUMBER = re.compile(r"\.0(?![0-9])|[0-9]e[-+]|(?<![.0-9])[0-9]{16}")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


def canonical_parsed(value: JSON) -> bytes:
    """Return the RFC 8785 bytes of a JSON value whose keys are all strings, as parsers give it.

    Raises:
        InputError: it has no canonical form.

    >>> canonical_parsed({"b": [1.5, 1.0], "a": None})
    b'{"a":null,"b":[1.5,1]}'
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        if _is_plain(text):
            return text.encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        pass
    return canonical_bytes(value)


def digest_parsed(value: JSON) -> str:
    """Return ``sha256:<hex>`` of `canonical_parsed`."""
    return digest_bytes(canonical_parsed(value))


def _is_plain(text: str) -> bool:
    """Whether nothing in JSON text is of a rare kind; in doubt it says no."""
    if _ASTRAL.search(text):
        return False
    return not _NUMBER.search(text) or not _NUMBER.search(_STRING.sub("", text))
