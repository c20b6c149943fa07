"""Checks JSON against a JSON Schema (2020-12), for the keywords that the report's schemas use.

The schemas are compiled once into closures. That takes a hundredth of the time that the jsonschema
library takes for a long report, and it is stricter where the standard is lax: 1.0 is no integer,
true is not 1, and a pattern matches the whole text (`$` would let a final newline through). The
tests hold the two against each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from impact_twin.procurement.model import JSON

Rule = Callable[[Any], None]
Schema = Mapping[str, Any]

_ANNOTATIONS = frozenset({"$schema", "$id", "$defs", "title", "description"})
_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
_SHOWN = 60


class BrokenRuleError(Exception):
    """A value breaks its schema.

    Attributes:
        path: Keys and places from the top to the value.
        message: What is wrong with it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path: list[str] = []


def compile_schema(files: Mapping[str, Schema], name: str) -> Rule:
    """Return a function that raises `BrokenRuleError` for what breaks a schema.

    Args:
        files: Schemas by file name; `$ref` may name a file of these, or `#/$defs/...`.
        name: The file to start from.

    Raises:
        ValueError: a schema uses a keyword, a reference or a pattern that this can't check.
    """
    return _Compiler(files).reference(name, "")


class _Compiler:
    def __init__(self, files: Mapping[str, Schema]) -> None:
        self._files = files
        self._known: dict[tuple[str, str], Rule] = {}

    def reference(self, file: str, pointer: str) -> Rule:
        """The rule of a whole file (`""`) or of one of its `$defs`; each is compiled once."""
        key = (file, pointer)
        if key not in self._known:
            try:
                schema = self._files[file]
                schema = schema["$defs"][pointer] if pointer else schema
            except KeyError:
                raise ValueError(f"there is no schema {file}#{pointer}") from None
            self._known[key] = self.rule(schema, file)
        return self._known[key]

    def rule(self, schema: Schema, file: str) -> Rule:
        """The rule of a schema object: all that its keywords demand."""
        unknown = schema.keys() - _ANNOTATIONS - _KEYWORDS.keys()
        if unknown:
            raise ValueError(f"{file}: unsupported keywords {sorted(unknown)}")
        makers = dict.fromkeys(make for keyword, make in _KEYWORDS.items() if keyword in schema)
        rules = [make(self, schema, file) for make in makers]
        if len(rules) == 1:
            return rules[0]

        def every(value: Any) -> None:
            for rule in rules:
                rule(value)

        return every


def _ref(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    target: str = schema["$ref"]
    name, _, pointer = target.partition("#")
    if pointer and not pointer.startswith("/$defs/"):
        raise ValueError(f"{file}: unsupported reference {target}")
    return compiler.reference(name or file, pointer.removeprefix("/$defs/"))


def _type(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    del compiler, file
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    allowed = frozenset(kind for name in names for kind in _TYPES[name])
    message = f"is not of type {' or '.join(names)}"

    def check(value: Any) -> None:
        if type(value) not in allowed:
            raise BrokenRuleError(f"{_short(value)} {message}")

    return check


def _enum(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    del compiler, file
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    allowed = {(type(item), item) for item in values}

    def check(value: Any) -> None:
        # Only scalars are listed, and a list or an object could not be hashed.
        if isinstance(value, list | dict) or (type(value), value) not in allowed:
            raise BrokenRuleError(f"{_short(value)} is not one of {_short(values)}")

    return check


def _pattern(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    del compiler
    pattern: str = schema["pattern"]
    if not (pattern.startswith("^") and pattern.endswith("$")):
        raise ValueError(f"{file}: the pattern {pattern} is not anchored")
    match = re.compile(pattern).fullmatch

    def check(value: Any) -> None:
        if isinstance(value, str) and match(value) is None:
            raise BrokenRuleError(f"{_short(value)} does not match {pattern}")

    return check


def _length(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    del compiler, file
    limits = (
        (str, schema.get("minLength", 0), schema.get("maxLength"), "characters"),
        (list, schema.get("minItems", 0), schema.get("maxItems"), "items"),
    )

    def check(value: Any) -> None:
        for kind, low, high, what in limits:
            if not isinstance(value, kind):
                continue
            if len(value) < low or (high is not None and len(value) > high):
                raise BrokenRuleError(f"has {len(value)} {what}")

    return check


def _range(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    del compiler, file
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")

    def check(value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        fits = (
            (low is None or value >= low)
            and (high is None or value <= high)
            and (above is None or value > above)
            and (below is None or value < below)
        )
        if not fits:
            raise BrokenRuleError(f"{_short(value)} is out of range")

    return check


def _object(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    known = {name: compiler.rule(item, file) for name, item in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    rest = schema.get("additionalProperties", True)
    other = compiler.rule(rest, file) if isinstance(rest, Mapping) else None
    names = schema.get("propertyNames")
    name_rule = None if names is None else compiler.rule(names, file)

    def check(value: Any) -> None:
        if not isinstance(value, dict):
            return
        for name in required:
            if name not in value:
                raise BrokenRuleError(f"lacks {name}")
        name = ""
        try:
            for name, item in value.items():
                if name_rule is not None:
                    name_rule(name)
                rule = known.get(name, other)
                if rule is not None:
                    rule(item)
                elif rest is False:
                    raise BrokenRuleError("is not a field of it")
        except BrokenRuleError as error:
            error.path.insert(0, name)
            raise

    return check


def _items(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    rule = compiler.rule(schema["items"], file)

    def check(value: Any) -> None:
        if not isinstance(value, list):
            return
        place = 0
        try:
            for place, item in enumerate(value):  # noqa: B007
                rule(item)
        except BrokenRuleError as error:
            error.path.insert(0, str(place))
            raise

    return check


def _unique(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    del compiler, schema, file

    def check(value: Any) -> None:
        if isinstance(value, list) and len({json.dumps(item) for item in value}) != len(value):
            raise BrokenRuleError("holds an item twice")

    return check


def _any_of(compiler: _Compiler, schema: Schema, file: str) -> Rule:
    rules = [compiler.rule(item, file) for item in schema["anyOf"]]

    def check(value: Any) -> None:
        errors = [error for rule in rules if (error := _broken(rule, value)) is not None]
        if len(errors) == len(rules):
            raise max(errors, key=lambda error: len(error.path))

    return check


def _broken(rule: Rule, value: Any) -> BrokenRuleError | None:
    try:
        rule(value)
    except BrokenRuleError as error:
        return error
    return None


_Make = Callable[[_Compiler, Schema, str], Rule]

# In the order of checking, so that a message names the plainest fault.
_KEYWORDS: Mapping[str, _Make] = {
    "type": _type,
    "const": _enum,
    "enum": _enum,
    "minLength": _length,
    "maxLength": _length,
    "minItems": _length,
    "maxItems": _length,
    "pattern": _pattern,
    "minimum": _range,
    "maximum": _range,
    "exclusiveMinimum": _range,
    "exclusiveMaximum": _range,
    "uniqueItems": _unique,
    "required": _object,
    "properties": _object,
    "additionalProperties": _object,
    "propertyNames": _object,
    "items": _items,
    "anyOf": _any_of,
    "$ref": _ref,
}


def _short(value: JSON) -> str:
    if isinstance(value, dict):
        return "an object"
    text = "[...]" if isinstance(value, list) and len(value) > 12 else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
