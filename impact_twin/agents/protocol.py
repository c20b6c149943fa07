"""What the runner asks of an agent, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from impact_twin.procurement.model import JSON, ToolSpec


@dataclass(frozen=True)
class Usage:
    """What a case consumed, as far as the provider said.

    Attributes:
        input_tokens: Prompt tokens, >= 0.
        output_tokens: Completion tokens, >= 0.
        cost_usd: US dollars, >= 0; None when unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True)
class ModelCall:
    """One request to a model, as it ended.

    Attributes:
        started: Unix seconds.
        duration_s: Seconds, monotonic clock.
        finish_reason: The provider's word, or None.
        response_id: The provider's id of the response, or None.
        http_status: Status of a failed request, or None.
        error: Kind of the failure, or None.
        cached: True when a cache of ours answered.
        usage: Tokens and cost.
    """

    started: float
    duration_s: float
    finish_reason: str | None = None
    response_id: str | None = None
    http_status: int | None = None
    error: str | None = None
    cached: bool = False
    usage: Usage = field(default_factory=Usage)


class CaseMonitor(Protocol):
    """Told by the agent layer while a case runs, so that a killed case keeps what is known.

    Every method is thread-safe, cheap and never raises. In process isolation the calls travel
    over the same pipe as the tool calls.
    """

    def request_started(self) -> None:
        """A request to a model has left."""

    def request_finished(self, call: ModelCall) -> None:
        """A request to a model has ended, well or not."""

    def delivered(self, texts: Sequence[str]) -> None:
        """All tool outputs that the model was shown, after the agent's defences (replaces)."""

    def rate_limited(self, retry_after_s: float) -> None:
        """The provider asked everybody to slow down for so many seconds (already capped)."""

    def wait_turn(self) -> bool:
        """Block while the whole run is slowed down; return False if the case is over by then."""


@dataclass(frozen=True)
class CaseRequest:
    """Everything an agent layer gets for one case. It never holds the pair's id or the twin.

    Attributes:
        query: The user's request.
        system_directive: The suite's system directive.
        tools: The tools' specifications, in suite order.
        call: Calls a tool by name with an arguments object; returns its text; never raises.
        monitor: Where to report requests and usage.
        seed: Seed derived for this case, in [0, 2^63).
        deadline_s: Seconds that this case may take in all.
    """

    query: str
    system_directive: str
    tools: tuple[ToolSpec, ...]
    call: Callable[[str, JSON], str]
    monitor: CaseMonitor
    seed: int
    deadline_s: float


@dataclass(frozen=True)
class CaseOutcome:
    """How the agent layer says that a case ended. Model calls and usage go to the monitor.

    Attributes:
        termination: `completed`, `agent_error`, `limit`, `refused` or `infrastructure_error`
            (`timeout` and `not_run` are the runner's to say).
        final_answer: The agent's answer, storable text; empty when there is none.
        error_kind: Short fixed word for the reason (`auth`, `rate_limit`, `bad_return_type`, ...).
        message: One redacted line of detail.
        http_status: Provider status, if that was the reason.
        usage: Usage that the agent itself reported; None when the monitor has it call by call.
        instance: Identity of the agent object, to detect a factory that shares one.
        detail: Extra JSON facts (tool calls that the agent reported, framework termination).
    """

    termination: str
    final_answer: str = ""
    error_kind: str = ""
    message: str = ""
    http_status: int | None = None
    usage: Usage | None = None
    instance: int | None = None
    detail: Mapping[str, JSON] = field(default_factory=dict)


class AgentSource(Protocol):
    """A way to make and call agents: demo, factory, model or pipeline.

    A source is described by its JSON `spec`; `impact_twin.agents.load_source(spec)` makes it, in
    this process or in a child.
    """

    @property
    def spec(self) -> Mapping[str, Any]:
        """The JSON object that `load_source` takes: `kind` and what that kind needs."""

    def identity(self) -> Mapping[str, JSON]:
        """What identifies the agent in plan and report: `name`, `kind`, parameters; no secrets."""

    def prepare(self) -> None:
        """Import and check everything before the first case.

        Raises:
            InputError: the agent can't be made, with the mend.
        """

    def run_case(self, request: CaseRequest) -> CaseOutcome:
        """Make a fresh agent and run one case to its end. Raises nothing but KeyboardInterrupt."""
