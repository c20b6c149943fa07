"""AgentDojo runtimes that record what the tools returned, before any defence rewrites it.

A defence such as a prompt-injection detector changes the messages of a pipeline. The world's event
log is written below the messages, so it keeps the tool's own output. Tools answer with text, also
for errors; they raise only where AgentDojo asks for it (`raise_on_error`).

A call of a tool that doesn't exist is recorded when a pipeline passes it on. AgentDojo's own
`ToolsExecutor` answers such calls by itself, so those leave no event; they change nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentdojo.functions_runtime import Function, FunctionsRuntime, TaskEnvironment

from impact_twin.procurement.arguments import plain_arguments, plain_name
from impact_twin.procurement.runtime import carry_out
from impact_twin.procurement.tools import functions
from impact_twin.procurement.world import ToolError, World

_ERROR = "ERROR: "


class TextRuntime(FunctionsRuntime):  # type: ignore[misc]  # agentdojo has no stubs
    """Runs every tool of ours through one method and answers with its text."""

    def run_function(
        self,
        env: TaskEnvironment | None,
        function: str,
        kwargs: Mapping[str, Any],
        raise_on_error: bool = False,
    ) -> tuple[str, str | None]:
        """Call a tool, see `FunctionsRuntime.run_function`; the error is always None.

        Tools that the pipeline took away or brought along are AgentDojo's own affair.

        Raises:
            ToolError: the world rejected the call, and `raise_on_error` is set.
        """
        if (function in self.functions) != (function in functions()):
            return super().run_function(env, function, kwargs, raise_on_error)  # type: ignore[no-any-return]
        try:
            arguments = self._execute_nested_calls(env, kwargs)
        except Exception as err:
            if raise_on_error:
                raise
            return f"{_ERROR}a nested call failed: {type(err).__name__}.", None
        output = self.answer(env, function, arguments)
        if raise_on_error and output.startswith(_ERROR):
            raise ToolError(output.removeprefix(_ERROR))
        return output, None

    def answer(self, env: TaskEnvironment | None, name: str, arguments: Any) -> str:
        """Carry out a call and return its text."""
        raise NotImplementedError


class CaseFunctionsRuntime(TextRuntime):
    """The tools of one case for an AgentDojo pipeline; the environment that it passes is ignored.

    Args:
        call: Calls a tool by name with an arguments object and returns its text, such as
            `CaseRuntime.call`.
    """

    def __init__(self, call: Callable[[str, Any], str]) -> None:
        super().__init__(list(functions().values()))
        self._call = call

    def answer(self, env: TaskEnvironment | None, name: str, arguments: Any) -> str:
        """Call the case's tool."""
        return self._call(name, arguments)


class RecordingRuntime(TextRuntime):
    """The same on the environment that AgentDojo passes: for `TaskSuite.run_task_with_pipeline`.

    Args:
        tools: The suite's tools.
    """

    def __init__(self, tools: Sequence[Function[..., Any]]) -> None:
        super().__init__(tools)
        self._lock = threading.Lock()

    def answer(self, env: TaskEnvironment | None, name: str, arguments: Any) -> str:
        """Carry the call out on `env`, a `World`."""
        if not isinstance(env, World):
            raise TypeError("the environment is no procurement world")
        with self._lock:
            return carry_out(env, plain_name(name), plain_arguments(arguments)).output


def recording_functions() -> list[Function[..., Any]]:
    """Return the tools as functions that record their calls in whatever runtime runs them.

    AgentDojo and others make a plain `FunctionsRuntime` now and then; it rejects bad arguments by
    itself, unrecorded, but no change of the world goes unrecorded.
    """
    return [_recording(function) for function in functions().values()]


def _recording(function: Function[..., Any]) -> Function[..., Any]:
    def run(world: World, **arguments: Any) -> str:
        event = carry_out(world, function.name, plain_arguments(arguments))
        if event.error:
            raise ToolError(event.output.removeprefix(_ERROR))
        return event.output

    return function.model_copy(update={"run": run})
