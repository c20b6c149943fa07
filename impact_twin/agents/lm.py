"""The engine under dspy.LM: one case's requests to a model, each one seen, counted and bounded."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from impact_twin.agents.protocol import CaseRequest, ModelCall, Usage
from impact_twin.agents.provider_errors import (
    RETRYABLE,
    Failure,
    capped,
    classify,
    plain_words,
)
from impact_twin.agents.redact import error_line
from impact_twin.procurement.model import JSON
from impact_twin.text import storable

ATTEMPTS = 3
BACKOFF_S = (0.5, 2.0)
MAX_REQUEST_S = 600.0
# Characters of one reply, arguments of its tool calls included; parsing more would take minutes.
MAX_REPLY = 400_000
EARLY_S = 0.25
# A reply whose arguments are no object travels to the tool under this key.
NOT_AN_OBJECT = "(arguments)"


@dataclass(frozen=True)
class Reply:
    """What a model answered, reduced to what an agent reads.

    Attributes:
        body: In the shape of an OpenAI chat completion, repaired where no text could hold it.
        finish_reason: The provider's word, as LiteLLM passes it on.
        refusal: The text of a refusal; empty when there is none.
        empty: No text and no tool call.
        size: Characters of text and arguments.
    """

    body: Mapping[str, JSON]
    finish_reason: str | None
    refusal: str
    empty: bool
    size: int


class CaseEndedError(Exception):
    """Ends the case from within a request.

    Args:
        failure: What happened.
        message: One redacted line.
    """

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message


class CaseEngine:
    """Sends one case's requests through LiteLLM, one HTTP request an attempt.

    The capability attributes are those that dspy's adapters ask an engine for.

    Args:
        request: The case: its monitor and its time.
        model: LiteLLM model id.
        client: Arguments for the connection (`api_base`, `api_key`).
        capabilities: `supports_function_calling`, `supports_reasoning`,
            `supports_response_schema`, `supported_params`.
    """

    def __init__(
        self,
        request: CaseRequest,
        model: str,
        client: Mapping[str, Any],
        capabilities: Mapping[str, Any],
    ) -> None:
        self._monitor = request.monitor
        self._model = model
        self._client = dict(client)
        self._ends = time.monotonic() + request.deadline_s
        self.supports_function_calling: bool = capabilities["supports_function_calling"]
        self.supports_reasoning: bool = capabilities["supports_reasoning"]
        self.supports_response_schema: bool = capabilities["supports_response_schema"]
        self.supported_params: frozenset[str] = frozenset(capabilities["supported_params"])
        self.ended: CaseEndedError | None = None
        self.last: Reply | None = None

    def complete(self, request: Any) -> Any:
        """Answer one `dspy.lm15.Request`; called by dspy.

        Raises:
            CaseEndedError: the provider refused or failed for good, or the case's time is over.
        """
        from dspy.clients.lm15_boundary import request_kwargs
        from dspy.lm15 import response_from_openai_chat

        if self.ended is not None:
            raise self.ended
        try:
            arguments = request_kwargs(request, "chat")
            self._monitor.delivered(tool_outputs(arguments["messages"]))
            reply = self._reply(arguments)
            self.last = reply
            if reply.finish_reason == "content_filter":
                raise CaseEndedError(
                    Failure("content_filter"), "the provider filtered the model's reply"
                )
            if reply.size > MAX_REPLY:
                raise CaseEndedError(
                    Failure("reply_too_long"),
                    f"one reply has {reply.size} characters; at most {MAX_REPLY} are taken",
                )
            if reply.refusal:
                raise CaseEndedError(Failure("refusal"), error_line(reply.refusal))
        except CaseEndedError as error:
            self.ended = error
            raise
        return response_from_openai_chat(dict(reply.body), model=request.model)

    def _reply(self, arguments: dict[str, Any]) -> Reply:
        for attempt in range(ATTEMPTS):
            in_time = self._monitor.wait_turn()
            remaining = self._ends - time.monotonic()
            if not in_time or remaining <= 0:
                raise CaseEndedError(Failure("time_over"), "the case's time was over")
            # A little early, so that a request which hangs is ours to explain.
            outcome = self._attempt(arguments, min(max(remaining - EARLY_S, 0.1), MAX_REQUEST_S))
            if isinstance(outcome, Reply):
                return outcome
            failure, message = outcome
            self._pause(failure, message, attempt)
        raise AssertionError("the last attempt ends the case")

    def _attempt(self, arguments: dict[str, Any], timeout: float) -> Reply | tuple[Failure, str]:
        import litellm

        started, clock = time.time(), time.monotonic()
        self._monitor.request_started()
        try:
            raw = litellm.completion(
                **arguments,
                **self._client,
                model=self._model,
                n=1,
                timeout=timeout,
                num_retries=0,
                # Not the same: without it the client below LiteLLM retries twice.
                max_retries=0,
                cache={"no-cache": True, "no-store": True},
            )
            reply, call = read_reply(raw), _model_call(raw, started, time.monotonic() - clock)
        except Exception as error:
            failure = classify(error)
            self._monitor.request_finished(
                ModelCall(
                    started=started,
                    duration_s=time.monotonic() - clock,
                    http_status=failure.http_status,
                    error=failure.kind,
                )
            )
            return failure, error_line(plain_words(error))
        if reply is None:
            self._monitor.request_finished(
                ModelCall(
                    started=call.started,
                    duration_s=call.duration_s,
                    response_id=call.response_id,
                    error="bad_response",
                    usage=call.usage,
                )
            )
            return Failure("bad_response"), "the reply holds no message that can be read"
        self._monitor.request_finished(call)
        return reply

    def _pause(self, failure: Failure, message: str, attempt: int) -> None:
        """Wait before the next attempt, or end the case if there is none."""
        if failure.kind not in RETRYABLE or attempt + 1 >= ATTEMPTS:
            raise CaseEndedError(failure, message)
        wish = capped(failure.retry_after_s)
        delay = BACKOFF_S[attempt] if wish is None else wish
        if failure.kind == "rate_limit":
            self._monitor.rate_limited(delay)
        if delay >= self._ends - time.monotonic():
            raise CaseEndedError(failure, f"{message} (no time left to try again)")
        time.sleep(delay)


def tool_outputs(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tool outputs in the messages of a request, as the model is shown them.

    With native tool calls they are the messages of role `tool`. In text mode they stand in the
    user messages that follow the first reply.
    """
    native = [_text(message) for message in messages if message.get("role") == "tool"]
    if native:
        return native
    texts: list[str] = []
    replied = False
    for message in messages:
        replied = replied or message.get("role") == "assistant"
        if replied and message.get("role") == "user":
            texts.append(_text(message))
    return texts


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts if isinstance(part, Mapping))


def read_reply(raw: Any) -> Reply | None:
    """Reduce LiteLLM's response to a `Reply`; None when it holds no readable message."""
    choice = (getattr(raw, "choices", None) or [None])[0]
    message = getattr(choice, "message", None)
    if message is None:
        return None
    calls = [_tool_call(call) for call in getattr(message, "tool_calls", None) or ()]
    if any(call is None for call in calls):
        return None
    content = getattr(message, "content", None)
    content = storable(content) if isinstance(content, str) else None
    reasoning = getattr(message, "reasoning_content", None)
    refusal = getattr(message, "refusal", None)
    finish = getattr(choice, "finish_reason", None)
    plain: dict[str, JSON] = {"role": "assistant", "content": content}
    if calls:
        plain["tool_calls"] = calls
    if isinstance(reasoning, str) and reasoning:
        plain["reasoning_content"] = storable(reasoning)
    usage = read_usage(raw)
    return Reply(
        body={
            "id": _response_id(raw) or "none",
            "object": "chat.completion",
            "model": storable(str(getattr(raw, "model", "") or "")),
            "choices": [{"index": 0, "message": plain, "finish_reason": _known(finish, calls)}],
            "usage": {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
            },
        },
        finish_reason=storable(finish) if isinstance(finish, str) else None,
        refusal=refusal.strip() if isinstance(refusal, str) and not calls else "",
        empty=not calls and not (content or "").strip(),
        size=len(content or "") + sum(len(call["function"]["arguments"]) for call in calls if call),
    )


def _known(finish: Any, calls: Sequence[Any]) -> str:
    # dspy takes the standard words only; the provider's own goes to the record.
    standard = ("stop", "length", "tool_calls", "content_filter")
    return finish if finish in standard else ("tool_calls" if calls else "stop")


def _tool_call(call: Any) -> dict[str, JSON] | None:
    function = getattr(call, "function", None)
    name = getattr(function, "name", None)
    if not isinstance(name, str) or not name:
        return None
    identity = getattr(call, "id", None)
    return {
        "id": storable(identity) if isinstance(identity, str) else "",
        "type": "function",
        "function": {
            "name": storable(name),
            "arguments": json.dumps(_arguments(getattr(function, "arguments", None))),
        },
    }


def _arguments(text: Any) -> dict[str, JSON]:
    """Return the arguments object; what is no object travels under `NOT_AN_OBJECT`."""
    if text is None or (isinstance(text, str) and not text.strip()):
        return {}
    value = text
    if isinstance(text, str):
        try:
            value = json.loads(text)
        except ValueError:
            import json_repair  # as dspy does with arguments that are not JSON

            value = json_repair.loads(text)
    value = _finite(value)
    return value if isinstance(value, dict) else {NOT_AN_OBJECT: value}


def _finite(value: Any) -> JSON:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_usage(raw: Any) -> Usage:
    """Return the tokens and cost of a response; a figure that can't be is none."""
    usage = getattr(raw, "usage", None)
    hidden = getattr(raw, "_hidden_params", None) or {}
    cost = hidden.get("response_cost") if isinstance(hidden, Mapping) else None
    known = isinstance(cost, int | float) and math.isfinite(cost) and cost >= 0
    return Usage(
        input_tokens=_count(getattr(usage, "prompt_tokens", None)),
        output_tokens=_count(getattr(usage, "completion_tokens", None)),
        cost_usd=float(cost) if known and cost is not None else None,
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def _response_id(raw: Any) -> str | None:
    found = getattr(raw, "id", None)
    return storable(found[:200]) if isinstance(found, str) and found else None


def _model_call(raw: Any, started: float, duration: float) -> ModelCall:
    hidden = getattr(raw, "_hidden_params", None) or {}
    choice = (getattr(raw, "choices", None) or [None])[0]
    finish = getattr(choice, "finish_reason", None)
    return ModelCall(
        started=started,
        duration_s=duration,
        finish_reason=storable(finish) if isinstance(finish, str) else None,
        response_id=_response_id(raw),
        cached=isinstance(hidden, Mapping) and hidden.get("cache_hit") is True,
        usage=read_usage(raw),
    )
