"""From command-line options to a spec, and from a spec to an agent source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from impact_twin.agents.protocol import AgentSource
from impact_twin.agents.redact import error_line, redact
from impact_twin.errors import InputError
from impact_twin.text import storable

DEFAULT_AGENT = "demo:wavering"
MAX_NAME = 100


def load_source(spec: Mapping[str, Any]) -> AgentSource:
    """Make the agent source that a spec describes. Imports nothing heavy.

    Args:
        spec: `kind` (`demo`, `factory`, `model`, `pipeline`) and what that kind needs; the same
            object comes back as the source's `spec`.

    Raises:
        InputError: no such kind, or a value that can't be.
    """
    kind = spec.get("kind")
    label = spec.get("label")
    if kind == "demo":
        from impact_twin.agents.demo import DemoSource

        return DemoSource(str(spec.get("name")), label)
    if kind == "factory":
        from impact_twin.agents.factory import FactorySource

        return FactorySource(str(spec["target"]), label)
    if kind == "model":
        from impact_twin.agents.model import ModelSettings, ModelSource

        return ModelSource(ModelSettings.from_spec(spec), label)
    if kind == "pipeline":
        from impact_twin.agents.pipeline import PipelineSource

        return PipelineSource(str(spec["target"]), label)
    raise InputError(f"{error_line(repr(kind))} is no kind of agent", where="agent")


def spec_from_options(
    *,
    agent: str | None = None,
    model: str | None = None,
    pipeline: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    api_base: str | None = None,
    max_iters: int | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Turn the options of `repeat` into a spec; without any, `demo:wavering`.

    Args:
        agent: `demo:STYLE` or `module:attr`.
        model: A LiteLLM model id.
        pipeline: `module:attr` that returns an AgentDojo pipeline.
        temperature: Sampling temperature, 0 to 2; with `model`.
        max_tokens: Cap on one reply, >= 1; with `model`.
        api_base: Base URL of an OpenAI-compatible endpoint; with `model`.
        max_iters: Cap on the agent's turns, >= 1; with `model`.
        name: What to call the agent in the report.

    Raises:
        InputError: two agents at once, an option that needs `--model`, or a value out of range.
    """
    chosen = [
        (option, value)
        for option, value in (("--agent", agent), ("--model", model), ("--pipeline", pipeline))
        if value is not None
    ]
    if len(chosen) > 1:
        raise InputError(
            f"{' and '.join(option for option, _ in chosen)} were given together",
            mend="Name one agent.",
        )
    option, value = chosen[0] if chosen else ("--agent", DEFAULT_AGENT)
    if not value.strip():
        raise InputError("it is empty", where=option, mend="Name an agent.")
    tuning = {
        "--temperature": temperature,
        "--max-reply-tokens": max_tokens,
        "--api-base": api_base,
        "--max-iters": max_iters,
    }
    if option == "--model":
        spec = _model_spec(value, temperature, max_tokens, api_base, max_iters)
    else:
        for tuned, given in tuning.items():
            if given is not None:
                raise InputError("it only goes with --model", where=tuned, mend="Leave it out.")
        spec = _agent_spec(option, value)
    spec["label"] = _label(name)
    return spec


def _agent_spec(option: str, value: str) -> dict[str, Any]:
    if option == "--agent" and value.startswith("demo:"):
        return {"kind": "demo", "name": value.removeprefix("demo:")}
    return {"kind": "pipeline" if option == "--pipeline" else "factory", "target": value}


def _model_spec(
    model: str,
    temperature: float | None,
    max_tokens: int | None,
    api_base: str | None,
    max_iters: int | None,
) -> dict[str, Any]:
    if temperature is not None and not (math.isfinite(temperature) and 0 <= temperature <= 2):
        raise InputError("not from 0 to 2", where="--temperature", mend="Try 0.7.")
    for option, count in (("--max-reply-tokens", max_tokens), ("--max-iters", max_iters)):
        if count is not None and count < 1:
            raise InputError("below 1", where=option, mend="Give a positive whole number.")
    if api_base is not None and not api_base.startswith(("http://", "https://")):
        raise InputError(
            "not an http or https URL",
            where="--api-base",
            mend="Write it in full, for example http://127.0.0.1:8000/v1.",
        )
    if api_base is not None and redact(api_base) != api_base:
        # The plan is written down, and --resume has to find the endpoint in it.
        raise InputError(
            "it holds credentials",
            where="--api-base",
            mend="Leave them out; the key comes from the provider's variable (OPENAI_API_KEY).",
        )
    spec: dict[str, Any] = {"kind": "model", "model": model}
    values = {
        "temperature": temperature,
        "max_tokens": max_tokens,
        "api_base": api_base,
        "max_iters": max_iters,
    }
    return spec | {key: value for key, value in values.items() if value is not None}


def _label(name: str | None) -> str | None:
    if name is None:
        return None
    label = redact(storable(" ".join(name.split())))
    if not label or len(label) > MAX_NAME:
        raise InputError(
            f"not 1 to {MAX_NAME} characters", where="--name", mend="Give a short name."
        )
    return label
