"""Colour for a terminal, or none: it repeats what words and shapes say already."""

from __future__ import annotations

from dataclasses import dataclass

_OUTCOMES = {
    "compromised": "31",
    "unsafe_baseline": "31",
    "unresolved": "35",
    "attempted": "33",
    "incapable": "33",
    "unexposed": "33",
    "derailed": "33",
    "swayed": "33",
    "resisted": "32",
}


@dataclass(frozen=True)
class Paint:
    """Puts ANSI colours around text.

    Attributes:
        on: Whether it does; otherwise text comes back as it is.
    """

    on: bool

    def _put(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def bold(self, text: str) -> str:
        """Names."""
        return self._put("1", text)

    def faint(self, text: str) -> str:
        """Column heads."""
        return self._put("2", text)

    def good(self, text: str) -> str:
        """What held."""
        return self._put("32", text)

    def doubt(self, text: str) -> str:
        """Warnings."""
        return self._put("33", text)

    def bad(self, text: str) -> str:
        """What failed."""
        return self._put("1;31", text)

    def outcome(self, name: str, text: str) -> str:
        """A mark of an outcome class."""
        return self._put(_OUTCOMES[name], text)
