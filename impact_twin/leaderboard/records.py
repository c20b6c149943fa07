"""What one run left behind: the record of a pair in one repeat, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from impact_twin.leaderboard.plan import Key

COMPLETED = "completed"
NO_ANSWER = "no_answer"
REFUSED = "refused"
INFRASTRUCTURE = "infrastructure_error"
TIMEOUT = "timeout"
CONTEXT_WINDOW = "context_window"
EMPTY_REPLY = "empty_reply"
HARNESS_ERROR = "harness_error"
NOT_RUN = "not_run"

TERMINATIONS = {
    COMPLETED: "the agent submitted an answer",
    NO_ANSWER: "the model's last reply was no answer that the scaffold could read",
    REFUSED: "the model or its provider refused",
    INFRASTRUCTURE: "the provider failed",
    TIMEOUT: "the run's time was up",
    CONTEXT_WINDOW: "the conversation outgrew the model's context",
    EMPTY_REPLY: "the last reply held nothing at all",
    HARNESS_ERROR: "the scaffold or a scoring rule failed",
    NOT_RUN: "planned, never started",
}

RESOLVED = frozenset({COMPLETED, NO_ANSWER, REFUSED})
"""The endings after which the final state says what the model did; the others are unresolved."""


@dataclass(frozen=True)
class Attempt:
    """One try at a run."""

    termination: str
    error: str | None
    status: int | None
    requests: int
    started_at: str
    duration_s: float
    trace: str
    retry_after: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as it stands in a record."""
        return {
            "termination": self.termination,
            "error": self.error,
            "status": self.status,
            "requests": self.requests,
            "started_at": self.started_at,
            "duration_s": round(self.duration_s, 3),
            "trace": self.trace,
        }


@dataclass(frozen=True)
class Record:
    """The raw result of one run.

    Attributes:
        key: Which run.
        termination: How the last attempt ended.
        utility: Whether AgentDojo's rule saw the user's task done; None when unresolved.
        attack_succeeded: Whether its rule saw the injection's goal met; None when unresolved or
            without an injection. A goal that was met before an error is known, not unresolved.
        exposed: Whether a tool output held the injected text.
        delivery: ``exact``, or ``folded`` when AgentDojo's YAML folded the text's line breaks.
        ended_by: ``submit`` or ``forced_submit``, when an answer was submitted.
        trace: Digest of turns, tool events and answer of the last attempt.
        requests: Requests sent, over all attempts.
        with_tools: Those of them that offered the tools natively.
        response_ids: The provider's ids of the last attempt's replies; None where it gave none.
        served_models: The model names that the replies carried.
        finishes: The finish reasons of the replies.
        usage: Tokens in and out of the last attempt, None where unknown.
        attempts: Every try, the last one too.
    """

    key: Key
    termination: str
    utility: bool | None
    attack_succeeded: bool | None
    exposed: bool | None
    delivery: str | None
    ended_by: str | None
    trace: str
    requests: int
    with_tools: int
    response_ids: tuple[str | None, ...]
    served_models: tuple[str, ...]
    finishes: tuple[str, ...]
    usage: dict[str, int | None]
    attempts: tuple[dict[str, Any], ...] = field(default=())

    @property
    def unresolved(self) -> bool:
        """Whether something about the run stays unknown."""
        known = self.attack_succeeded is not None or self.key.injection_task is None
        return self.utility is None or not known

    def to_json(self) -> dict[str, Any]:
        """Return the record as a line of ``records.jsonl``."""
        return {
            "suite": self.key.suite,
            "attack": self.key.attack,
            "user_task": self.key.user_task,
            "injection_task": self.key.injection_task,
            "repeat": self.key.repeat,
            "termination": self.termination,
            "utility": self.utility,
            "attack_succeeded": self.attack_succeeded,
            "exposed": self.exposed,
            "delivery": self.delivery,
            "ended_by": self.ended_by,
            "trace": self.trace,
            "requests": self.requests,
            "with_tools": self.with_tools,
            "response_ids": list(self.response_ids),
            "served_models": list(self.served_models),
            "finishes": list(self.finishes),
            "usage": self.usage,
            "attempts": list(self.attempts),
        }


def record_from_json(content: dict[str, Any]) -> Record:
    """Read a record that the schema has checked."""
    content = dict(content)
    key = Key(
        content.pop("suite"),
        content.pop("attack"),
        content.pop("user_task"),
        content.pop("injection_task"),
        content.pop("repeat"),
    )
    for name in ("response_ids", "served_models", "finishes", "attempts"):
        content[name] = tuple(content[name])
    return Record(key=key, **content)
