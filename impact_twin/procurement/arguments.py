"""What an agent passes to a tool: made plain JSON first, then checked by our own strict rules.

Every message depends on the plain form alone, so that replaying a recorded call gives the same
answer. A part that has no plain form becomes null, which no tool accepts: it can't slip through as
something else. The rules:

- Only objects, arrays (and tuples), strings, finite numbers below 2^53 in size, booleans and null.
  A number without a fraction becomes an integer, so 81.0 and 81 are one value; -0.0 becomes 0.
- Lone surrogates become U+FFFD.
- Null stands for anything else: other objects, NaN, infinities, larger numbers, strings longer than
  `MAX_STRING`, nesting deeper than `MAX_DEPTH`.
- The arguments as a whole become null when they hold more than `MAX_NODES` values, more than
  `MAX_TEXT` characters, or a key that is no string.
- ``"12"`` is no number, ``true`` is no number, ``1`` is no string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from impact_twin.procurement.model import JSON, ToolSpec
from impact_twin.text import storable

MAX_DEPTH = 16
MAX_NODES = 2_000
MAX_STRING = 20_000
MAX_TEXT = 40_000
MAX_NAME = 200

_LIMIT = 2**53


class _UnusableError(Exception):
    pass


def plain_name(name: object) -> str:
    """Return a tool name as storable text, cut at `MAX_NAME` characters; empty when it is none."""
    try:
        return storable(str.__str__(name)[:MAX_NAME]) if isinstance(name, str) else ""
    except Exception:  # even isinstance asks a stranger's object
        return ""


def plain_arguments(value: object) -> JSON:
    """Return the plain JSON form of what came as arguments. Never raises.

    >>> plain_arguments({"score": 81.0, "rationale": float("nan")})
    {'score': 81, 'rationale': None}
    """
    try:
        return _Plain().value(value, 0)
    except Exception:  # a stranger's object may raise anything while it is read
        return None


def problem(spec: ToolSpec, arguments: JSON) -> str | None:
    """Return what is wrong with plain arguments, in fixed words; None when they fit the tool.

    Names in the sentence are the tool's own parameters, never the caller's words.
    """
    if not isinstance(arguments, dict):
        return "the arguments must be one JSON object."
    properties: Mapping[str, Any] = spec.parameters["properties"]
    for name in spec.parameters["required"]:
        if name not in arguments:
            return f"the argument {name} is missing."
    if any(name not in properties for name in arguments):
        names = ", ".join(properties) or "none"
        return f"unknown argument; {spec.name} takes: {names}."
    for name, schema in properties.items():
        if name in arguments and (wrong := _wrong(schema, arguments[name])):
            return f"the argument {name} must be {wrong}."
    return None


def _wrong(schema: Mapping[str, Any], value: JSON) -> str | None:
    """Return what the value should have been; None when it is."""
    kind = schema["type"]
    if kind == "string":
        if not isinstance(value, str):
            return f"a string of at most {MAX_STRING} characters"
        if "enum" in schema and value not in schema["enum"]:
            return "one of " + ", ".join(schema["enum"])
        return None
    if kind == "number":
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        return None if fits else "a finite number"
    fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return None if fits else "an array of strings"


class _Plain:
    """One pass over a stranger's value, with its budgets."""

    def __init__(self) -> None:
        self.nodes = MAX_NODES
        self.text = MAX_TEXT

    def value(self, value: object, depth: int) -> JSON:
        self.nodes -= 1
        if self.nodes < 0:
            raise _UnusableError
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, (int, float)):
            return _number(value)
        return self.nested(value, depth + 1) if depth < MAX_DEPTH else None

    def nested(self, value: object, depth: int) -> JSON:
        if isinstance(value, dict):
            return {self.key(key): self.value(item, depth) for key, item in dict.items(value)}
        if isinstance(value, (list, tuple)):
            return [self.value(item, depth) for item in value]
        return None

    def string(self, value: str) -> str | None:
        exact = str.__str__(value)
        if len(exact) > MAX_STRING:
            return None
        self.text -= len(exact)
        if self.text < 0:
            raise _UnusableError
        return storable(exact)

    def key(self, value: object) -> str:
        text = self.string(value) if isinstance(value, str) else None
        if text is None:
            raise _UnusableError
        return text


def _number(value: float) -> JSON:
    """Return a number of exact type, or None when it is none that JSON can hold safely."""
    # The base class's own method: a subclass may have overridden anything.
    exact = int.__add__(value, 0) if isinstance(value, int) else float.__add__(value, 0.0)
    if not -_LIMIT < exact < _LIMIT:
        return None
    return int(exact) if float.is_integer(float(exact)) else exact
