"""The tools as an agent gets them: typed, documented functions that record every call."""

from __future__ import annotations

import inspect
import itertools
import json
import marshal
import weakref
from collections.abc import Callable, Mapping, Sequence
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
    packed: bytes

    def parameters(self) -> dict[str, JSON]:
        """Return a copy of the schema; this is the quickest way to make one."""
        return cast("dict[str, JSON]", marshal.loads(self.packed))  # noqa: S302 (our own bytes)


class _Kit:
    """The tools of one case, held weakly: they go with the case."""

    def __init__(self) -> None:
        self.serial = next(_SERIAL)
        self.tools: list[weakref.ref[Any]] = []

    def find(self, name: str) -> Any:
        """Return the tool of a qualified name; None when it is gone."""
        for item in self.tools:
            tool = item()
            if tool is not None and tool.__qualname__ == name:
                return tool
        return None


_KITS: weakref.WeakValueDictionary[str, _Kit] = weakref.WeakValueDictionary()


def make_tools(request: CaseRequest) -> list[AgentTool]:
    """Return one function a tool, in suite order, bound to this case.

    Each has the signature, annotations and Google-style docstring that agent frameworks read, and
    the attributes of `AgentTool`. Copying one gives the same function; pickling it works inside
    the process and gives a function that answers `GONE` in any other.
    """
    return make_tools_of(request.tools, request.call)


def make_tools_of(specs: Sequence[ToolSpec], call: Callable[[str, JSON], str]) -> list[AgentTool]:
    """Return one function a tool.

    Args:
        specs: The tools.
        call: Takes a tool's name and its arguments object; returns text; never raises.
    """
    kit = _Kit()
    _KITS[str(kit.serial)] = kit
    return [_make_tool(spec, call, kit) for spec in specs]


def _make_tool(spec: ToolSpec, call: Callable[[str, JSON], str], kit: _Kit) -> AgentTool:
    shape = _shape(spec)
    tool_name = spec.name

    def tool(*args: Any, **kwargs: Any) -> str:
        return call(tool_name, _arguments(shape, args, kwargs))

    def openai_schema() -> dict[str, JSON]:
        return {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": shape.parameters(),
            },
        }

    dressed = cast(Any, tool)
    dressed.__name__ = tool_name
    dressed.__qualname__ = f"{_PREFIX}{kit.serial}_{tool_name}"
    dressed.__module__ = __name__
    dressed.__doc__ = shape.doc
    dressed.__signature__ = shape.signature
    dressed.__annotations__ = dict(shape.annotations)
    dressed.name = tool_name
    dressed.description = spec.description
    dressed.parameters = shape.parameters()
    dressed.openai_schema = openai_schema
    dressed._kit = kit
    kit.tools.append(weakref.ref(tool))
    return cast(AgentTool, tool)


def __getattr__(name: str) -> Any:
    # pickle looks a function up by its qualified name, so a live tool has to be findable by it.
    if not name.startswith(_PREFIX):
        raise AttributeError(name)
    kit = _KITS.get(name.removeprefix(_PREFIX).partition("_")[0])
    return (kit.find(name) if kit else None) or _gone


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


# A suite's specs live as long as the process; the key keeps its spec, so that no id is used twice.
_SHAPES: dict[int, tuple[ToolSpec, _Shape]] = {}
_MOST_SHAPES = 256


def _shape(spec: ToolSpec) -> _Shape:
    known = _SHAPES.get(id(spec))
    if known is not None and known[0] is spec:
        return known[1]
    if len(_SHAPES) >= _MOST_SHAPES:
        _SHAPES.clear()
    shape = _new_shape(spec)
    _SHAPES[id(spec)] = (spec, shape)
    return shape


def _new_shape(spec: ToolSpec) -> _Shape:
    parameters = json.loads(json.dumps(spec.parameters))
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
        doc=_doc(spec.description, names, properties),
        packed=marshal.dumps(parameters),
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
