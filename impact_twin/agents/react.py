"""dspy.ReActV2 with our tools: every call that the model makes reaches the world."""

from __future__ import annotations

from functools import cache
from typing import Any

from impact_twin.agents.lm import NOT_AN_OBJECT
from impact_twin.agents.protocol import CaseRequest
from impact_twin.procurement.model import JSON, ToolSpec


def make_agent(request: CaseRequest, max_iters: int) -> Any:
    """Return a fresh `dspy.ReActV2` for one case.

    The system directive becomes the signature's instructions, which dspy puts at the head of the
    system message. The agent keeps why its loop ended in `break_reason`.
    """
    import dspy

    classes = _classes()
    signature = dspy.Signature("request: str -> answer: str", request.system_directive)
    tools = [classes.tool(spec, request.call) for spec in request.tools]
    agent = classes.agent(signature, tools=tools, max_iters=max_iters)
    agent.tools = classes.table(agent.tools, request.call)
    return agent


class _Classes:
    def __init__(self, agent: Any, tool: Any, table: Any) -> None:
        self.agent = agent
        self.tool = tool
        self.table = table


@cache
def _classes() -> _Classes:
    """Define the subclasses; here, because dspy is imported only where it is used."""
    import dspy

    class RecordingTool(dspy.Tool):  # type: ignore[misc, unused-ignore]
        """A tool that checks nothing: the world checks, and records what it refuses."""

        def __init__(self, spec: ToolSpec, call: Any) -> None:
            def function(**arguments: Any) -> str:
                return str(call(spec.name, _unwrapped(arguments)))

            super().__init__(
                function,
                name=spec.name,
                desc=spec.description,
                args=dict(spec.parameters.get("properties", {})),
                arg_types={},
            )
            object.__setattr__(self, "_schema", dict(spec.parameters))

        def __call__(self, /, **arguments: Any) -> Any:
            return self.func(**arguments)

        async def acall(self, /, **arguments: Any) -> Any:
            return self.func(**arguments)

        def format_as_litellm_function_call(self) -> dict[str, JSON]:
            return {
                "type": "function",
                "function": {
                    "name": self.name,
                    "description": self.desc,
                    "parameters": object.__getattribute__(self, "_schema"),
                },
            }

    class ToolTable(dict):  # type: ignore[type-arg]
        """Knows every name: ReActV2 would answer an unknown one itself, and nobody would see it."""

        def __init__(self, known: dict[str, Any], call: Any) -> None:
            super().__init__(known)
            self._call = call

        def __contains__(self, name: object) -> bool:
            return isinstance(name, str)

        def __missing__(self, name: str) -> Any:
            return RecordingTool(ToolSpec(name, "", {"properties": {}}), self._call)

    class Agent(dspy.ReActV2):  # type: ignore[misc, unused-ignore]
        """Remembers why the loop ended before the forced submit."""

        break_reason = ""

        def _forced_submit(self, history: Any, pending: Any, reason: str, turn: int) -> Any:
            self.break_reason = reason
            return super()._forced_submit(history, pending, reason, turn)

    return _Classes(Agent, RecordingTool, ToolTable)


def _unwrapped(arguments: dict[str, Any]) -> Any:
    return arguments[NOT_AN_OBJECT] if set(arguments) == {NOT_AN_OBJECT} else arguments
