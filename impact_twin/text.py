"""Untrusted text, made safe to show and safe to store."""

from __future__ import annotations

import re
import unicodedata

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SURROGATE = re.compile("[\ud800-\udfff]")


def escape(text: str, *, keep: str = "") -> str:
    r"""Return text with every control, format, surrogate and unassigned character escaped.

    Args:
        text: Text from an agent, a document, a report or a file name.
        keep: Characters to leave alone, usually a newline where lines may break.

    >>> escape("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char in keep or unicodedata.category(char) not in _UNSAFE else _spell(char)
        for char in text
    )


def storable(text: str) -> str:
    r"""Return text that UTF-8 can hold: each lone surrogate becomes U+FFFD.

    >>> storable("a\ud800b") == "a\ufffdb"
    True
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _spell(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
