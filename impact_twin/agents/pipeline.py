"""`--pipeline module:attr`: an AgentDojo pipeline, run on our tools."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from impact_twin.agents.background import wait_for
from impact_twin.agents.calling import BadResultError, Instances, checked_answer
from impact_twin.agents.factory import MAX_NAME, PROBE_S, Target, import_target
from impact_twin.agents.pipeline_watch import Watch, has_system_message, message_text, watch
from impact_twin.agents.protocol import CaseOutcome, CaseRequest
from impact_twin.agents.provider_errors import of_provider
from impact_twin.agents.redact import error_line, redact
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.text import storable

OPTION = "--pipeline"


class PipelineSource:
    """AgentDojo pipelines made by `module:attr`, which takes no argument or `seed`.

    Args:
        target: `module:attr`.
        label: What to call the agent in the report; None: the pipeline's `name`, else the target.
    """

    def __init__(self, target: str, label: str | None = None) -> None:
        self._target = target
        self._label = label
        self._lock = threading.Lock()
        self._factory: Target | None = None
        self._probe: list[Any] = []
        self._pipeline_name: str | None = None
        self._instances = Instances()

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec that `load_source` takes."""
        return {"kind": "pipeline", "target": self._target, "label": self._label}

    def identity(self) -> Mapping[str, JSON]:
        """Name, target, whether it takes a seed, and the digest of the module's file."""
        loaded = self._load()
        return {
            "name": self._label or self._pipeline_name or redact(self._target),
            "kind": "pipeline",
            "target": redact(self._target),
            "takes_seed": loaded.takes_seed,
            "source_digest": loaded.source_digest,
        }

    def prepare(self) -> None:
        """Import the factory and make one pipeline, to see that it can be done.

        A factory without `seed` hands that pipeline to the first case; with `seed` it is dropped.
        """
        loaded = self._load()
        try:
            pipeline = self._made(loaded, 0, PROBE_S)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(
                f"{error_line(self._target)} failed to make a pipeline: {error_line(error)}",
                where=OPTION,
                mend="The factory must return a pipeline without being given anything but seed.",
            ) from None
        if not callable(getattr(pipeline, "query", None)):
            what = "None" if pipeline is None else f"a {type(pipeline).__name__} without query"
            raise InputError(
                f"{error_line(self._target)} returned {what}",
                where=OPTION,
                mend="Return an AgentDojo AgentPipeline or another BasePipelineElement.",
            )
        name = getattr(pipeline, "name", None)
        if isinstance(name, str) and name.strip():
            self._pipeline_name = redact(storable(name.strip()))[:MAX_NAME]
        if not loaded.takes_seed:
            with self._lock:
                self._probe[:] = [pipeline]

    def run_case(self, request: CaseRequest) -> CaseOutcome:
        """Make a pipeline and query it once.

        AgentDojo's own runner queries up to three times while the answer is empty, each time in
        the world that the query before has changed. Here one query is one case.
        """
        number: int | None = None
        stage = "build_failed"
        seen = Watch(request)
        try:
            pipeline = self._make(request)
            number = self._instances.number(pipeline)
            stage = "exception"
            return _query(pipeline, request, seen, number)
        except SystemExit as error:
            return _failed("system_exit", f"sys.exit({error_line(repr(error.code))})", number)
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise
            return _failed("interrupted", error_line(error), number)
        except BadResultError as error:
            return _failed(error.kind, error.message, number, error.answer)
        except BaseException as error:
            return _raised(error, stage, number)

    def _make(self, request: CaseRequest) -> Any:
        with self._lock:
            if self._probe:
                return self._probe.pop()
        return self._made(self._load(), request.seed, request.deadline_s)

    def _made(self, loaded: Target, seed: int, timeout_s: float) -> Any:
        pipeline = loaded.make(seed)
        return wait_for(pipeline, timeout_s) if inspect.isawaitable(pipeline) else pipeline

    def _load(self) -> Target:
        with self._lock:
            if self._factory is None:
                self._factory = import_target(self._target, option=OPTION)
            return self._factory


def _query(pipeline: Any, request: CaseRequest, seen: Watch, number: int | None) -> CaseOutcome:
    from agentdojo.agent_pipeline.errors import AbortAgentError
    from agentdojo.functions_runtime import EmptyEnv

    from impact_twin.procurement.agentdojo_runtime import CaseFunctionsRuntime

    watch(pipeline)
    query, messages = _opening(pipeline, request)
    ended = "answer"
    with seen.on():
        try:
            result = pipeline.query(
                query, CaseFunctionsRuntime(request.call), EmptyEnv(), messages, {}
            )
            final = _messages_of(result)
        except AbortAgentError as error:
            # The defence stopped the agent; AgentDojo takes that for the agent's answer, too.
            final, ended = error.messages, "aborted"
    if not seen.calls:
        seen.delivered(final)
    detail: dict[str, JSON] = {"framework_termination": ended, "model_turns": seen.calls}
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
        return _failed("no_answer", "the last message is not the assistant's", number)
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
        return _failed("empty_reply", "the model's last reply is empty", number)
    return CaseOutcome("completed", answer, instance=number, detail=detail)


def _raised(error: BaseException, stage: str, number: int | None) -> CaseOutcome:
    failure = of_provider(error)
    if failure is None:
        return _failed(stage, error_line(error), number)
    return CaseOutcome(
        failure.termination,
        error_kind=failure.kind,
        message=error_line(error),
        http_status=failure.http_status,
        instance=number,
    )


def _failed(kind: str, message: str, number: int | None, answer: str = "") -> CaseOutcome:
    return CaseOutcome(
        "agent_error",
        final_answer=answer,
        error_kind=kind,
        message=error_line(message),
        instance=number,
    )
