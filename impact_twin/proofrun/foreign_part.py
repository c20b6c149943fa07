"""A part of a stranger's JSON, read field by field, with the path in every message."""

from __future__ import annotations

from typing import Any

from impact_twin.errors import CheckFailedError, InputError
from impact_twin.text import escape

_SHOWN = 80


class Part:
    """A JSON value with the path that leads to it.

    Args:
        value: The value.
        path: Keys and places from the top, with dots.
        where: The file, for messages.
    """

    def __init__(self, value: Any, path: str, where: str) -> None:
        self.value = value
        self._path = path
        self._where = where

    def error(self, what: str, key: str = "") -> InputError:
        """Return the error that says what is wrong with a field."""
        return InputError(f"{self._name(key)} {what}", where=self._where, mend=_MEND)

    def failed(self, what: str, key: str = "") -> CheckFailedError:
        """Return the error that says which stated thing does not follow from the content."""
        return CheckFailedError(
            f"{self._name(key)} {what}",
            where=self._where,
            mend="The file was changed after it was written, or contradicts itself.",
        )

    def part(self, key: str) -> Part:
        """Return an object within this one."""
        return self._child(key, dict, "is no object")

    def optional(self, key: str) -> Part | None:
        """Return an object within this one; None when there is none, or it is null."""
        return None if self.value.get(key) is None else self.part(key)

    def parts(self, key: str) -> list[Part]:
        """Return the objects of a list."""
        found = self._child(key, list, "is no list")
        for place, item in enumerate(found.value):
            if not isinstance(item, dict):
                raise found.error("is no object", str(place))
        return [
            Part(item, f"{found._path}.{place}", self._where)
            for place, item in enumerate(found.value)
        ]

    def text(self, key: str) -> str:
        """Return a text."""
        found: str = self._child(key, str, "is no text").value
        return found

    def text_or_none(self, key: str) -> str | None:
        """Return a text or null; a missing one is null."""
        return None if self.value.get(key) is None else self.text(key)

    def texts(self, key: str) -> list[str]:
        """Return a list of texts."""
        found = self._child(key, list, "is no list")
        if not all(isinstance(item, str) for item in found.value):
            raise found.error("holds something else than texts")
        return list(found.value)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        found: bool = self._child(key, bool, "is neither true nor false").value
        return found

    def whole(self, key: str) -> int:
        """Return a whole number, >= 0."""
        found = self._child(key, int, "is no whole number").value
        if isinstance(found, bool) or found < 0:
            raise self.error("is no count", key)
        return int(found)

    def whole_or_none(self, key: str) -> int | None:
        """Return a whole number or null; a missing one is null."""
        return None if self.value.get(key) is None else self.whole(key)

    def number(self, key: str) -> float:
        """Return a number, whole or real."""
        found = self._child(key, (int, float), "is no number").value
        if isinstance(found, bool):
            raise self.error("is no number", key)
        return found  # type: ignore[no-any-return]

    def same(self, key: str, wanted: str | int) -> None:
        """Refuse a field that isn't exactly this.

        Raises:
            InputError: it isn't.
        """
        found = self._child(key, type(wanted), f"is not {wanted!r}").value
        if found != wanted or isinstance(found, bool):
            raise self.error(f"is not {escape(str(wanted))[:_SHOWN]!r}", key)

    def _child(self, key: str, kind: type | tuple[type, ...], problem: str) -> Part:
        if key not in self.value:
            raise self.error("is missing", key)
        found = self.value[key]
        if not isinstance(found, kind):
            raise self.error(problem, key)
        return Part(found, f"{self._path}.{key}" if self._path else key, self._where)

    def _name(self, key: str) -> str:
        path = ".".join(part for part in (self._path, key) if part)
        return escape(path)[:200] or "the file"


_MEND = "Give a RepeatTwin v1 report of dspy-security-bench, or a bundle with one."
