"""`--pipeline module:attr`: an AgentDojo pipeline, run on our tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from impact_twin.agents.calling import BadResultError, checked_answer, ended, failed, settled
from impact_twin.agents.pipeline_watch import Watch, has_system_message, message_text, watch
from impact_twin.agents.protocol import CaseOutcome, CaseRequest
from impact_twin.agents.target import TargetSource
from impact_twin.procurement.model import JSON


class PipelineSource(TargetSource):
    """AgentDojo pipelines."""

    KIND = "pipeline"
    OPTION = "--pipeline"
    NOUN = "a pipeline"
    METHOD = "query"
    MEND = "Return an AgentDojo AgentPipeline or another BasePipelineElement."

    def run_case(self, request: CaseRequest) -> CaseOutcome:
        """Make a pipeline and query it once.

        AgentDojo's own runner queries up to three times while the answer is empty, each time in
        the world that the query before has changed. Here one query is one case.
        """
        number: int | None = None
        stage = "build_failed"
        seen = Watch(request)
        try:
            pipeline = settled(self._make(request), request.deadline_s)
            number = self._instances.number(pipeline)
            stage = "exception"
            return _query(pipeline, request, seen, number)
        except BaseException as error:
            return ended(error, stage, number)


def _query(pipeline: Any, request: CaseRequest, seen: Watch, number: int | None) -> CaseOutcome:
    from agentdojo.agent_pipeline.errors import AbortAgentError
    from agentdojo.functions_runtime import EmptyEnv

    from impact_twin.procurement.agentdojo_runtime import CaseFunctionsRuntime

    watch(pipeline)
    query, messages = _opening(pipeline, request)
    how = "answer"
    with seen.on():
        try:
            result = pipeline.query(
                query, CaseFunctionsRuntime(request.call), EmptyEnv(), messages, {}
            )
            final = _messages_of(result)
        except AbortAgentError as error:
            # The defence stopped the agent; AgentDojo takes that for the agent's answer, too.
            final, how = error.messages, "aborted"
    if not seen.calls:
        seen.delivered(final)
    detail: dict[str, JSON] = {"framework_termination": how, "model_turns": seen.calls}
    return _answered(final, number, detail)


def _opening(pipeline: Any, request: CaseRequest) -> tuple[str, list[dict[str, Any]]]:
    """Return query and first messages, so that the system directive comes in somewhere.

    With a `SystemMessage` element it is added to that element's message. A composed pipeline
    without one starts from a system message; a single element gets it ahead of the query.
    """
    directive = request.system_directive
    if not directive or has_system_message(pipeline):
        return request.query, []
    if hasattr(pipeline, "elements"):
        content = [{"type": "text", "content": directive}]
        return request.query, [{"role": "system", "content": content}]
    return f"{directive}\n\n{request.query}", []


def _messages_of(result: Any) -> Sequence[Mapping[str, Any]]:
    try:
        messages = list(result[3])
    except (TypeError, IndexError, KeyError):
        raise BadResultError(
            "bad_return_type", f"query returned {type(result).__name__}: expected five values"
        ) from None
    if not all(isinstance(message, Mapping) for message in messages):
        raise BadResultError("bad_return_type", "query returned messages that are no objects")
    return messages


def _answered(
    messages: Sequence[Mapping[str, Any]], number: int | None, detail: Mapping[str, JSON]
) -> CaseOutcome:
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant":
        return failed("no_answer", "the last message is not the assistant's", number)
    answer = checked_answer(message_text(last))
    if last.get("tool_calls"):
        return CaseOutcome(
            "limit",
            answer,
            "max_iters",
            "the pipeline stopped while the model still called tools",
            instance=number,
            detail=detail,
        )
    if not answer.strip():
        return failed("empty_reply", "the model's last reply is empty", number)
    return CaseOutcome("completed", answer, instance=number, detail=detail)
