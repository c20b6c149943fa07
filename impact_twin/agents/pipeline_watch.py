"""Watches the elements of an AgentDojo pipeline: model requests, what the model was shown.

Elements are wrapped once an object, and look up the case of their context when they run: a factory
that hands out one pipeline for all cases may have several of them running it at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from impact_twin.agents.protocol import CaseRequest, ModelCall
from impact_twin.agents.provider_errors import Failure, of_provider
from impact_twin.agents.traffic import Traffic, listen
from impact_twin.text import storable

_MARK = "_impact_twin_watched"
_MODEL_PACKAGE = "agentdojo.agent_pipeline.llms"
MAX_DEPTH = 8


class Watch:
    """What one case's pipeline does.

    Attributes:
        calls: How often a model was asked, retries inside the element not counted.
    """

    def __init__(self, request: CaseRequest) -> None:
        self._request = request
        self.calls = 0

    @contextmanager
    def on(self) -> Iterator[None]:
        """Make this the case that elements of the current context report to."""
        token = _case.set(self)
        try:
            yield
        finally:
            _case.reset(token)

    def element(self, element: Any, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run one element and report what it was."""
        messages = list(_argument(args, kwargs, 3, "messages") or ())
        self._record_unknown_tools(element, messages)
        if not _is_model(element):
            return self._plain(run, args, kwargs, messages)
        self.calls += 1
        self.delivered(messages)
        if not self._request.monitor.wait_turn():
            raise TimeoutError("the case's time was over")
        with Traffic(self._request.monitor).on() as traffic:
            started, clock = time.time(), time.monotonic()
            if not listen(getattr(element, "client", None)):
                traffic.begin()
            try:
                result = run(*args, **kwargs)
            except BaseException as error:
                failure = of_provider(error) or Failure("exception")
                traffic.end(_call(started, clock, failure.kind, failure.http_status))
                raise
            traffic.end(_call(started, clock, None, None))
        return result

    def delivered(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Report the tool outputs among messages that a model is shown."""
        self._request.monitor.delivered(
            [
                str(message.get("error") or "") or message_text(message)
                for message in messages
                if message.get("role") == "tool"
            ]
        )

    def _plain(
        self, run: Callable[..., Any], args: Any, kwargs: Any, messages: Sequence[Any]
    ) -> Any:
        """Run an element that is not known to ask a model; its result shows whether it did."""
        started, clock = time.time(), time.monotonic()
        result = run(*args, **kwargs)
        added = _added(result, messages)
        if any(message.get("role") == "assistant" for message in added):
            self.calls += 1
            self.delivered(messages)
            self._request.monitor.request_started()
            self._request.monitor.request_finished(_call(started, clock, None, None))
        return result if messages else self._directed(result)

    def _directed(self, result: Any) -> Any:
        """Add the system directive where the pipeline's own system message has just begun."""
        added = _added(result, ())
        directive = self._request.system_directive
        if not directive or len(added) != 1 or added[0].get("role") != "system":
            return result
        own = message_text(added[0])
        text = f"{own}\n\n{directive}" if own else directive
        message = {"role": "system", "content": [{"type": "text", "content": text}]}
        return (*result[:3], [message], *result[4:])

    def _record_unknown_tools(self, element: Any, messages: Sequence[Mapping[str, Any]]) -> None:
        # ToolsExecutor answers an unknown name by itself, and the world would never see it.
        from agentdojo.agent_pipeline.tool_execution import ToolsExecutor

        if not isinstance(element, ToolsExecutor) or not messages:
            return
        known = {tool.name for tool in self._request.tools}
        for call in messages[-1].get("tool_calls") or ():
            if getattr(call, "function", None) not in known:
                self._request.call(str(call.function), dict(call.args))


_case: ContextVar[Watch | None] = ContextVar("impact_twin_pipeline_case", default=None)


def watch(pipeline: Any, depth: int = 0) -> None:
    """Wrap every element of a pipeline, once."""
    inner = _elements(pipeline)
    if inner is not None and depth < MAX_DEPTH:
        for element in inner:
            watch(element, depth + 1)
        return
    if getattr(pipeline, _MARK, False):
        return
    run = pipeline.query

    def query(*args: Any, **kwargs: Any) -> Any:
        case = _case.get()
        if case is None:
            return run(*args, **kwargs)
        return case.element(pipeline, run, args, kwargs)

    try:
        pipeline.query = query
        setattr(pipeline, _MARK, True)
    except AttributeError:
        return


def has_system_message(pipeline: Any, depth: int = 0) -> bool:
    """Return whether a pipeline has an element that sets the system message."""
    from agentdojo.agent_pipeline.basic_elements import SystemMessage

    inner = _elements(pipeline)
    if inner is None or depth >= MAX_DEPTH:
        return isinstance(pipeline, SystemMessage)
    return any(has_system_message(element, depth + 1) for element in inner)


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of an AgentDojo message; empty when it has none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else ()
    texts = [
        block.get("content")
        for block in blocks
        if isinstance(block, Mapping) and block.get("type", "text") == "text"
    ]
    return "\n".join(text for text in texts if isinstance(text, str))


def _elements(pipeline: Any) -> list[Any] | None:
    """Return the parts of a composed pipeline; what can be read once only is kept as a list."""
    found = getattr(pipeline, "elements", None)
    if found is None:
        return None
    if not isinstance(found, list | tuple):
        found = list(found)
        pipeline.elements = found
    return list(found)


def _is_model(element: Any) -> bool:
    return any(cls.__module__.startswith(_MODEL_PACKAGE) for cls in type(element).__mro__)


def _added(result: Any, before: Sequence[Any]) -> list[Mapping[str, Any]]:
    messages = result[3] if isinstance(result, tuple) and len(result) == 5 else ()
    added = list(messages)[len(before) :]
    return [message for message in added if isinstance(message, Mapping)]


def _argument(args: tuple[Any, ...], kwargs: Mapping[str, Any], index: int, name: str) -> Any:
    return args[index] if len(args) > index else kwargs.get(name)


def _call(started: float, clock: float, error: str | None, status: int | None) -> ModelCall:
    return ModelCall(
        started=started,
        duration_s=time.monotonic() - clock,
        http_status=status,
        error=storable(error) if error else None,
    )
