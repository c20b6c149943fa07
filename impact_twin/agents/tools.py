"""The tools as an agent gets them: typed, documented functions that record every call."""

from __future__ import annotations

import inspect
import itertools
import json
import weakref
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast

from impact_twin.agents.protocol import CaseRequest
from impact_twin.procurement.model import JSON, ToolSpec

GONE = "ERROR: this tool belongs to a case that is not running here"

_TYPES: Mapping[str, type] = {
    "string": str,
    "number": float,
    "integer": int,
    "boolean": bool,
    "object": dict,
}
_PREFIX = "live_"
_SERIAL = itertools.count(1)
# Weak: a case's tools go with the case.
_LIVE: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


class AgentTool(Protocol):
    """What an agent may rely on. The objects are plain functions with these attributes.

    Attributes:
        name: The tool's name, equal to `__name__`.
        description: What it does, for the model.
        parameters: JSON Schema of its arguments; the agent's own copy.
    """

    name: str
    description: str
    parameters: dict[str, JSON]

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        """Call the tool by keyword, or by position in the schema's order. Never raises."""

    def openai_schema(self) -> dict[str, JSON]:
        """Return the tool in the form of OpenAI's `tools` array."""


class _Shape(NamedTuple):
    """What all copies of one tool share; nothing in it is handed to an agent unshielded."""

    names: tuple[str, ...]
    optional: frozenset[str]
    signature: inspect.Signature
    annotations: tuple[tuple[str, Any], ...]
    doc: str
    schema: str


def make_tools(request: CaseRequest) -> list[AgentTool]:
    """Return one function a tool, in suite order, bound to this case."""
    return [make_tool(spec, request.call) for spec in request.tools]


def make_tool(spec: ToolSpec, call: Callable[[str, JSON], str]) -> AgentTool:
    """Return a function that calls one tool of one case.

    It has the signature, annotations and Google-style docstring that agent frameworks read, and
    the attributes of `AgentTool`. Copying it gives the same function; pickling it works inside the
    process and gives a function that answers `GONE` in any other.

    Args:
        spec: The tool.
        call: Takes the tool's name and its arguments object; returns text; never raises.
    """
    shape = _shape(spec.name, spec.description, json.dumps(spec.parameters))
    tool_name = spec.name

    def tool(*args: Any, **kwargs: Any) -> str:
        return call(tool_name, _arguments(shape, args, kwargs))

    return _dress(tool, spec, shape)


def _dress(function: Callable[..., str], spec: ToolSpec, shape: _Shape) -> AgentTool:
    schema = shape.schema
    qualname = f"{_PREFIX}{next(_SERIAL)}_{spec.name}"

    def openai_schema() -> dict[str, JSON]:
        return {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": json.loads(schema),
            },
        }

    dressed = cast(Any, function)
    dressed.__name__ = spec.name
    dressed.__qualname__ = qualname
    dressed.__module__ = __name__
    dressed.__doc__ = shape.doc
    dressed.__signature__ = shape.signature
    dressed.__annotations__ = dict(shape.annotations)
    dressed.name = spec.name
    dressed.description = spec.description
    dressed.parameters = json.loads(schema)
    dressed.openai_schema = openai_schema
    _LIVE[qualname] = function
    return cast(AgentTool, function)


def __getattr__(name: str) -> Any:
    # pickle looks a function up by its qualified name, so a live tool has to be findable by it.
    if not name.startswith(_PREFIX):
        raise AttributeError(name)
    return _LIVE.get(name) or _gone


def _gone(*_args: Any, **_kwargs: Any) -> str:
    return GONE


def _arguments(shape: _Shape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments object; what fits nowhere keeps a name that the world rejects."""
    arguments = dict(kwargs)
    for index, value in enumerate(args):
        known = index < len(shape.names) and shape.names[index] not in kwargs
        arguments[shape.names[index] if known else f"positional_{index + 1}"] = value
    # Frameworks fill an omitted optional argument with its default.
    for name in shape.optional:
        if name in arguments and arguments[name] is None:
            del arguments[name]
    return arguments


@lru_cache(maxsize=256)
def _shape(name: str, description: str, schema: str) -> _Shape:
    parameters = json.loads(schema)
    properties: dict[str, Any] = parameters.get("properties", {})
    required = set(parameters.get("required", ()))
    # A parameter without a default can't follow one with a default.
    names = tuple(sorted(properties, key=lambda key: key not in required))
    annotations: dict[str, Any] = {}
    signature = []
    for key in names:
        kind = _annotation(properties[key])
        default: Any = inspect.Parameter.empty
        if key not in required:
            default = properties[key].get("default")
            kind = kind if default is not None else kind | None
        annotations[key] = kind
        signature.append(
            inspect.Parameter(
                key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind
            )
        )
    annotations["return"] = str
    return _Shape(
        names=names,
        optional=frozenset(names) - required,
        signature=inspect.Signature(signature, return_annotation=str),
        annotations=tuple(annotations.items()),
        doc=_doc(description, names, properties),
        schema=schema,
    )


def _annotation(schema: Mapping[str, JSON]) -> Any:
    kind = schema.get("type")
    if kind == "array":
        return list[_annotation(schema.get("items", {}))]  # type: ignore[misc]
    return _TYPES.get(kind, Any) if isinstance(kind, str) else Any


def _doc(description: str, names: tuple[str, ...], properties: Mapping[str, Any]) -> str:
    lines = [description.strip()]
    if names:
        lines += ["", "Args:"]
        lines += [f"    {name}: {_one_line(properties[name], name)}" for name in names]
    return "\n".join([*lines, "", "Returns:", "    Text."])


def _one_line(schema: Mapping[str, JSON], name: str) -> str:
    return " ".join(str(schema.get("description") or f"The {name.replace('_', ' ')}.").split())
