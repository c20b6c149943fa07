"""The agent: `dspy.ReActV2`, unoptimised and undefended, over a world's tools."""

from __future__ import annotations

from typing import Any

from impact_twin.leaderboard.endpoint import RecordingEngine

# isort: split
import dspy

from impact_twin.leaderboard.protocol import Protocol
from impact_twin.leaderboard.tasks import World


class _TextTool(dspy.Tool):  # type: ignore[misc]
    """A tool that answers in text whatever happens.

    A tool that raises makes ReActV2 show the model a stack with this machine's paths.
    """

    def __call__(self, /, **arguments: Any) -> Any:
        return self.func(**arguments)


def ask(world: World, engine: RecordingEngine, protocol: Protocol) -> Any:
    """Run the agent on a world's request and return dspy's prediction.

    Raises:
        Exception: What dspy raises: an `LMError`, an `AdapterParseError`, a `ValueError`.
    """
    lm = dspy.LM(
        "impact-twin/pinned",
        engine=engine,
        temperature=protocol.temperature,
        max_tokens=protocol.max_tokens,
        cache=False,
        num_retries=0,
    )
    adapter = dspy.ChatAdapter(use_native_function_calling=True, use_json_adapter_fallback=False)
    # Entered here and not around the runs: a raw thread doesn't see the caller's context.
    with dspy.context(lm=lm, adapter=adapter, disable_history=True, callbacks=[]):
        program = dspy.ReActV2(protocol.signature, world_tools(world), protocol.max_iters)
        program.tools["submit"] = _quiet(program.tools["submit"])
        return program(query=world.prompt)


def world_tools(world: World) -> list[Any]:
    """Return a world's AgentDojo functions as dspy tools, with AgentDojo's own schemas."""
    return [_world_tool(world, function) for function in world.suite.tools]


def _world_tool(world: World, function: Any) -> Any:
    name = function.name

    def run(**arguments: Any) -> str:
        return world.call(name, arguments)

    schema = function.parameters.model_json_schema()
    properties = _resolved(schema.get("properties", {}), schema.get("$defs", {}))
    return _TextTool(
        run,
        name=name,
        desc=function.description,
        args=properties,
        arg_types=dict.fromkeys(properties, Any),
    )


def _quiet(submit: Any) -> Any:
    def run(**arguments: Any) -> Any:
        try:
            return submit(**arguments)
        except Exception as err:
            return f"ERROR: {err}"

    return _TextTool(
        run, name=submit.name, desc=submit.desc, args=submit.args, arg_types=submit.arg_types
    )


def _resolved(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _resolved(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        return {key: _resolved(value, definitions) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_resolved(value, definitions) for value in schema]
    return schema
