"""The model's side of a run: one pinned engine, no cache, and a record of every request.

dspy chooses between two engines by the options it is given, and retries by itself. Here its native
engine is used alone, each request is sent once, and what came back is read before dspy parses it,
since a refused or empty reply reaches the program only as a parse error.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

# litellm, which dspy may load, otherwise fetches a price list when it is imported.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from dspy.lm15 import (
    AccessPolicy,
    LM15Error,
    LMRouter,
    NotConfiguredError,
    OpenAIChatCompat,
    ProviderDefinition,
    RefusalPart,
    Request,
    Response,
    RouterConfig,
    TextPart,
    Timeouts,
    TransportError,
)

from impact_twin.errors import InputError
from impact_twin.leaderboard.plain import plain
from impact_twin.text import storable

OWN_PROVIDER = "own-endpoint"
PROVIDERS = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "gemini": "gemini",
    "groq": "groq",
    "moonshot": "moonshotai",
    "ollama": "ollama",
    "openai": "openai-chat",
    "openrouter": "openrouter",
    "hosted_vllm": "vllm",
    "xai": "xai",
}
"""The prefixes of model ids that dspy spells, and the native engine's names for them."""

FAILED = "error"
"""The finish reason of a reply that the provider gave up on; what it holds is no behaviour."""

_NO_KEY = "no-key-needed"
_KEY_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_KEY_TEXT = re.compile(
    r"\b(?:sk|gsk|xai|hf)[-_][A-Za-z0-9_-]{8,}|(?<=Bearer )\S+|(?<=[?&]key=)[^\s&\"']+"
)
_SHORTEST_KEY = 8


@dataclass(frozen=True)
class EndpointOptions:
    """How to reach the model.

    Attributes:
        model: The model id of the row, ``provider/name``.
        api_base: Address of a server that speaks the OpenAI chat protocol; None for the provider
            that the id names.
        api_key: The key; None to let the provider's usual environment variable supply it.
        upstreams: OpenRouter only: the upstream providers to use, in order, and no others.
    """

    model: str
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    upstreams: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """One reply of the model, as the engine received it."""

    text: str
    calls: tuple[dict[str, Any], ...]
    finish: str
    refused: bool
    response_id: str | None
    served_model: str
    input_tokens: int | None
    output_tokens: int | None

    @property
    def empty(self) -> bool:
        """Whether the reply held neither text, nor a call, nor a refusal."""
        return not (self.text.strip() or self.calls or self.refused)


@dataclass
class RequestLog:
    """What one run asked of the model and got."""

    requests: int = 0
    with_tools: int = 0
    outstanding: int = 0
    turns: list[Turn] = field(default_factory=list)
    closed: bool = False


class Endpoint:
    """A model behind dspy's native engine; one connection pool for all runs.

    Raises:
        InputError: The id leads to no provider, or its key is missing.
    """

    def __init__(self, options: EndpointOptions, *, request_seconds: float) -> None:
        self.options = options
        timeouts = Timeouts(
            connect=min(30.0, request_seconds), read=request_seconds, write=request_seconds
        )
        prefix, _, name = options.model.partition("/")
        provider = PROVIDERS.get(prefix) if name else None
        if options.upstreams and provider != "openrouter":
            raise InputError("only OpenRouter takes upstream providers", where="--upstream")
        if provider is None and options.api_base is None:
            raise InputError(
                f"{options.model!r} names no provider that dspy's native engine knows",
                where="--model",
                mend=f"Write PROVIDER/NAME with one of {', '.join(PROVIDERS)}, or add --api-base.",
            )
        self._wire_model = name or options.model
        self._router = LMRouter(_config(provider, options, timeouts))
        try:
            self._client = self._router.lm(f"{provider or OWN_PROVIDER}:{self._wire_model}")
        except NotConfiguredError as err:
            names = " or ".join(getattr(err, "env_keys", ()) or ()) or "its key"
            raise InputError(
                f"no API key for {options.model!r}", where="--model", mend=f"Set {names}."
            ) from None
        except LM15Error as err:
            raise InputError(str(err).strip().splitlines()[0], where="--model") from None

    def complete(self, request: Request) -> Response:
        """Send one request, once."""
        if self.options.upstreams:
            routing = {"order": list(self.options.upstreams), "allow_fallbacks": False}
            extensions = {**(request.config.extensions or {}), "provider": routing}
            request = replace(request, config=replace(request.config, extensions=extensions))
        response: Response = self._client.complete(replace(request, model=self._wire_model))
        return response

    def close(self) -> None:
        """Close the connections; a request under way fails."""
        self._router.close()


class RecordingEngine:
    """A dspy engine for one run; refuses to send more once the run has ended."""

    supports_function_calling = True
    supports_reasoning = False
    supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens", "tools", "tool_choice"})

    def __init__(self, complete: Callable[[Request], Response]) -> None:
        self.log = RequestLog()
        self._complete = complete
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        """Send the request and note what was sent and what came back."""
        with self._lock:
            if self.log.closed:
                raise TransportError("the run has ended")
            self.log.requests += 1
            self.log.outstanding += 1
            self.log.with_tools += bool(request.tools)
        try:
            response = self._complete(request)
        finally:
            with self._lock:
                self.log.outstanding -= 1
        turn = _turn(response)
        with self._lock:
            if not self.log.closed:
                self.log.turns.append(turn)
        if turn.finish == FAILED:
            raise TransportError("the reply's finish reason is an error")
        return response

    def close(self) -> None:
        """End the run: nothing more is sent and a late reply isn't noted."""
        with self._lock:
            self.log.closed = True


def redact(text: str, key: str | None = None) -> str:
    """Return text without keys: the given one, the environment's, and what looks like one."""
    if key:
        text = text.replace(key, "[redacted]")
    for name, value in os.environ.items():
        if _KEY_NAME.search(name) and len(value) >= _SHORTEST_KEY:
            text = text.replace(value, "[redacted]")
    return _KEY_TEXT.sub("[redacted]", text)


def _turn(response: Response) -> Turn:
    parts = response.message.parts
    return Turn(
        text=storable("\n".join(part.text for part in parts if isinstance(part, TextPart))),
        calls=tuple(
            {"tool": storable(call.name), "arguments": plain(call.input)}
            for call in response.tool_calls
        ),
        finish=FAILED if _gave_up(response) else str(response.finish_reason),
        refused=response.finish_reason == "content_filter"
        or any(isinstance(part, RefusalPart) for part in parts),
        response_id=None if response.id is None else storable(response.id),
        served_model=storable(response.model),
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
    )


def _gave_up(response: Response) -> bool:
    # The native engine takes a finish reason that it doesn't know for "stop".
    data = response.provider_data
    choices = data.get("choices") if isinstance(data, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, dict) and first.get("finish_reason") == FAILED


def _config(provider: str | None, options: EndpointOptions, timeouts: Timeouts) -> RouterConfig:
    if provider is not None and options.api_base is None:
        keys = {provider: options.api_key} if options.api_key else None
        return RouterConfig(api_keys=keys, timeouts=timeouts)
    # A provider's key of the environment is not for another address than the provider's own.
    key = options.api_key or _NO_KEY
    if provider is not None:
        return RouterConfig(
            api_keys={provider: key},
            base_urls={provider: str(options.api_base)},
            timeouts=timeouts,
        )
    access = AccessPolicy(provider=OWN_PROVIDER, base_url=str(options.api_base).rstrip("/"))
    compat = OpenAIChatCompat(
        instruction_role="system", max_tokens_field="max_tokens", cache_control="none"
    )
    return RouterConfig(
        api_keys={OWN_PROVIDER: key},
        providers=(ProviderDefinition.chat(access, compat=compat),),
        timeouts=timeouts,
    )
