"""`--model`: dspy.ReActV2 on any LiteLLM model id."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from impact_twin.agents.calling import BadResultError, checked_answer
from impact_twin.agents.lm import CaseEngine
from impact_twin.agents.protocol import CaseOutcome, CaseRequest
from impact_twin.agents.react import make_agent
from impact_twin.agents.redact import clean_url, error_line, redact
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.text import storable

DEFAULT_MAX_ITERS = 40
NO_KEY = "none"


@dataclass(frozen=True)
class ModelSettings:
    """What `--model` and its options say.

    Attributes:
        model: LiteLLM model id.
        temperature: None leaves it to the provider.
        max_tokens: Cap on one reply; None leaves it to the provider.
        api_base: Base URL of an OpenAI-compatible endpoint; None: the provider's own.
        max_iters: Cap on the agent's turns.
    """

    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    api_base: str | None = None
    max_iters: int = DEFAULT_MAX_ITERS

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> ModelSettings:
        """Read the settings of a spec."""
        return cls(
            model=str(spec["model"]),
            temperature=spec.get("temperature"),
            max_tokens=spec.get("max_tokens"),
            api_base=spec.get("api_base"),
            max_iters=spec.get("max_iters") or DEFAULT_MAX_ITERS,
        )


class ModelSource:
    """dspy.ReActV2 agents on one model.

    Args:
        settings: Model and parameters.
        label: What to call the agent in the report; None: the model id.
    """

    def __init__(self, settings: ModelSettings, label: str | None = None) -> None:
        self._settings = settings
        self._label = label

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec that `load_source` takes. Holds `api_base` as given: not for writing."""
        settings = self._settings
        return {
            "kind": "model",
            "model": settings.model,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "api_base": settings.api_base,
            "max_iters": settings.max_iters,
            "label": self._label,
        }

    def identity(self) -> Mapping[str, JSON]:
        """Model, endpoint without credentials, parameters, engine and adapter."""
        settings = self._settings
        return {
            "name": self._label or redact(settings.model),
            "kind": "model",
            "model": redact(settings.model),
            "api_base": clean_url(settings.api_base) if settings.api_base else None,
            "parameters": {
                "temperature": settings.temperature,
                "max_tokens": settings.max_tokens,
                "max_iters": settings.max_iters,
                "seed": None,
            },
            "agent": "dspy.ReActV2",
            "engine": "litellm",
            "adapter": "ChatAdapter",
            "tool_calls": "native" if self._capabilities["supports_function_calling"] else "text",
            "cache": False,
        }

    def prepare(self) -> None:
        """Import dspy and LiteLLM and check what can be checked without a request.

        Raises:
            InputError: no such provider, no key for it, or parameters that the model refuses.
        """
        litellm = _litellm()
        settings = self._settings
        try:
            litellm.get_llm_provider(settings.model, api_base=settings.api_base)
        except Exception:
            raise InputError(
                f"{error_line(settings.model)!r} names no provider that LiteLLM knows",
                where="--model",
                mend="Write provider/model, for example openai/gpt-4o-mini.",
            ) from None
        missing = litellm.validate_environment(settings.model).get("missing_keys") or []
        if settings.api_base is None and len(missing) == 1 and missing[0].endswith("_API_KEY"):
            raise InputError(
                f"there is no key for {error_line(settings.model)}",
                where="--model",
                mend=f"Set {missing[0]}.",
            )
        try:
            self._lm(_NoEngine(self._capabilities))
        except Exception as error:
            raise InputError(
                error_line(error), where="--model", mend="Change the option."
            ) from None

    def run_case(self, request: CaseRequest) -> CaseOutcome:
        """Run one case with a fresh agent, LM and engine."""
        try:
            engine = CaseEngine(request, self._settings.model, self._client, self._capabilities)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return CaseOutcome("agent_error", error_kind="build_failed", message=error_line(error))
        try:
            prediction, reason = self._run(request, engine)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return self._failed(engine, error)
        return _completed(engine, prediction, reason)

    def _run(self, request: CaseRequest, engine: CaseEngine) -> tuple[Any, str]:
        import dspy

        agent = make_agent(request, self._settings.max_iters)
        adapter = dspy.ChatAdapter(use_native_function_calling=engine.supports_function_calling)
        # Contexts are per thread, and dspy keeps every request of the process unless told not to.
        with dspy.context(
            lm=self._lm(engine), adapter=adapter, disable_history=True, track_usage=False, trace=[]
        ):
            try:
                return agent(request=request.query), agent.break_reason
            except Exception as error:
                raise _AgentFailedError(agent.break_reason, error) from error

    def _lm(self, engine: Any) -> Any:
        import dspy

        settings = self._settings
        return dspy.LM(
            settings.model,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            cache=False,
            num_retries=0,
            engine=engine,
        )

    @cached_property
    def _client(self) -> dict[str, Any]:
        base = self._settings.api_base
        if base is None:
            return {}
        missing = _litellm().validate_environment(self._settings.model).get("missing_keys")
        # A local server wants no key, but its client refuses to start without one.
        return {"api_base": base, "api_key": NO_KEY} if missing else {"api_base": base}

    @cached_property
    def _capabilities(self) -> dict[str, Any]:
        """What the model can do, by LiteLLM's table; an unknown one is given its tools natively."""
        litellm = _litellm()
        model = self._settings.model
        info = _model_info(litellm, model)
        native = info is None or self._settings.api_base is not None
        return {
            "supports_function_calling": native or bool(info.get("supports_function_calling")),
            "supports_reasoning": bool(info and info.get("supports_reasoning")),
            "supports_response_schema": bool(info and info.get("supports_response_schema")),
            "supported_params": _supported_params(litellm, model),
        }

    def _failed(self, engine: CaseEngine, error: BaseException) -> CaseOutcome:
        if engine.ended is not None:
            failure = engine.ended.failure
            return CaseOutcome(
                failure.termination,
                error_kind=failure.kind,
                message=self._mend(failure.kind, engine.ended.message),
                http_status=failure.http_status,
            )
        reason = error.reason if isinstance(error, _AgentFailedError) else ""
        termination, kind = _why(engine, reason)
        detail = {"framework_termination": reason} if reason else {}
        message = error_line(error.error if isinstance(error, _AgentFailedError) else error)
        return CaseOutcome(termination, error_kind=kind, message=message, detail=detail)

    def _mend(self, kind: str, message: str) -> str:
        """Put the setting to mend at the head of the provider's words."""
        model = error_line(self._settings.model)
        variable = _key_variable(self._settings.model)
        base = self._settings.api_base
        mends = {
            "auth": f"The key was refused: check {variable}.",
            "quota": f"The account behind {variable} has no quota left.",
            "no_such_model": f"The provider has no model {model}: check --model"
            + (" and --api-base." if base else "."),
            "connection": "The endpoint can't be reached"
            + (": check --api-base." if base else ": check the network."),
            "bad_request": "The provider refuses the request: check --model, --temperature "
            "and --max-reply-tokens.",
            "bad_response": "The reply is no chat completion"
            + (": check --api-base." if base else "."),
        }
        return error_line(" ".join(part for part in (mends.get(kind, ""), message) if part))


class _NoEngine:
    """Stands in for the engine while the parameters are checked."""

    def __init__(self, capabilities: Mapping[str, Any]) -> None:
        self.supports_function_calling = capabilities["supports_function_calling"]

    def complete(self, request: Any) -> Any:
        raise AssertionError(f"no request was to be sent: {request}")


class _AgentFailedError(Exception):
    """ReActV2 raised; its history is lost, the reason is kept."""

    def __init__(self, reason: str, error: Exception) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


def _why(engine: CaseEngine, reason: str) -> tuple[str, str]:
    """Return termination and kind of a run without an answer, from the model's last reply."""
    last = engine.last
    if last is not None and last.finish_reason == "length":
        return "limit", "reply_truncated"
    if reason == "max_iters":
        return "limit", "max_iters"
    if last is not None and last.empty:
        return "agent_error", "empty_reply"
    return "agent_error", "no_answer"


def _completed(engine: CaseEngine, prediction: Any, reason: str) -> CaseOutcome:
    answer = getattr(prediction, "answer", None)
    text = answer if isinstance(answer, str) else json.dumps(answer, default=str)
    detail: dict[str, JSON] = {
        "framework_termination": storable(str(getattr(prediction, "termination_reason", "")))
    }
    if reason:
        detail["loop_ended"] = reason
    try:
        text = checked_answer(storable(text))
    except BadResultError as error:
        return CaseOutcome("agent_error", error.answer, error.kind, error.message, detail=detail)
    if engine.last is not None and engine.last.finish_reason == "length":
        return CaseOutcome(
            "limit", text, "reply_truncated", "the reply with the answer was cut", detail=detail
        )
    return CaseOutcome("completed", text, detail=detail)


def _litellm() -> Any:
    # Without it, importing LiteLLM fetches its price table from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import dspy  # noqa: F401
    import litellm

    litellm.suppress_debug_info = True
    # LiteLLM's types and the client's disagree about what odd replies look like.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    # Both log parts of replies, which are untrusted, to the terminal.
    logging.getLogger("dspy").setLevel(logging.CRITICAL)
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


def _model_info(litellm: Any, model: str) -> Any:
    try:
        return litellm.get_model_info(model)
    except Exception:
        return None


def _supported_params(litellm: Any, model: str) -> tuple[str, ...]:
    try:
        return tuple(litellm.get_supported_openai_params(model=model) or ())
    except Exception:
        return ()


def _key_variable(model: str) -> str:
    provider = model.partition("/")[0] if "/" in model else "openai"
    return f"{error_line(provider).upper()}_API_KEY"
