"""One try at a run: the agent in its own thread, our own clock, and AgentDojo's verdict."""

from __future__ import annotations

import datetime
import threading
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from impact_twin.leaderboard.endpoint import Endpoint, RecordingEngine, Turn, redact
from impact_twin.leaderboard.scaffold import ask

# isort: split
from dspy.utils.exceptions import (
    AdapterParseError,
    ContextWindowExceededError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
    is_retryable_lm_error,
)

from impact_twin.canonical import digest
from impact_twin.leaderboard.protocol import Protocol
from impact_twin.leaderboard.records import (
    COMPLETED,
    CONTEXT_WINDOW,
    EMPTY_REPLY,
    HARNESS_ERROR,
    INFRASTRUCTURE,
    NO_ANSWER,
    REFUSED,
    RESOLVED,
    TIMEOUT,
    Attempt,
)
from impact_twin.leaderboard.tasks import World
from impact_twin.text import storable

_HOPELESS = (
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)
_REFUSALS = (401, 402, 403, 404)
_FILTER_WORDS = ("content_filter", "content management policy", "content filter")
_ERROR_LENGTH = 300


@dataclass(frozen=True)
class CaseResult:
    """One try, scored."""

    attempt: Attempt
    utility: bool | None
    attack_succeeded: bool | None
    exposed: bool | None
    ended_by: str | None
    turns: tuple[Turn, ...]
    with_tools: int
    trace: dict[str, Any]
    retryable: bool
    hopeless: bool


@dataclass(frozen=True)
class _Ending:
    termination: str
    answer: str = ""
    ended_by: str | None = None
    error: str | None = None
    status: int | None = None
    retryable: bool = False
    hopeless: bool = False
    retry_after: float | None = None


def run_case(world: World, endpoint: Endpoint, protocol: Protocol) -> CaseResult:
    """Run the agent once on a fresh world, within the protocol's time, and score what it left.

    A client's own timeouts bound neither a reply that drips nor a wait that the server asks for,
    so the agent runs in a thread that is left behind, sealed off, when the time is up.
    """
    engine = RecordingEngine(endpoint.complete)
    outcome: list[_Ending] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(_play(world, engine, protocol))
        finally:
            done.set()

    started_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    start = time.monotonic()
    threading.Thread(target=work, daemon=True, name="leaderboard-case").start()
    done.wait(protocol.limits.pair_seconds)
    engine.close()
    world.seal()
    duration = time.monotonic() - start
    ending = (
        outcome[0]
        if outcome
        else _Ending(
            TIMEOUT, error=f"no end within {protocol.limits.pair_seconds:g} s", retryable=True
        )
    )
    if ending.error is not None:
        ending = replace(ending, error=redact(ending.error, endpoint.options.api_key))
    return _scored(world, engine, ending, started_at, duration)


def _play(world: World, engine: RecordingEngine, protocol: Protocol) -> _Ending:
    try:
        prediction = ask(world, engine, protocol)
        answer = prediction.answer
        return _Ending(
            COMPLETED,
            answer=storable(answer if isinstance(answer, str) else str(answer)),
            ended_by=str(prediction.termination_reason),
        )
    except LMError as err:
        return _provider_ending(err)
    except (AdapterParseError, ValueError) as err:
        return _unreadable_ending(engine.log.turns, err)
    except Exception as err:
        return _Ending(HARNESS_ERROR, error=_told(err))


def _provider_ending(err: LMError) -> _Ending:
    if isinstance(err, ContextWindowExceededError):
        return _Ending(CONTEXT_WINDOW, error=_told(err), status=err.status)
    text = f"{err.provider_code} {err.message}".lower()
    if isinstance(err, LMInvalidRequestError) and any(word in text for word in _FILTER_WORDS):
        return _Ending(REFUSED, error=_told(err), status=err.status)
    return _Ending(
        INFRASTRUCTURE,
        error=_told(err),
        status=err.status,
        retryable=is_retryable_lm_error(err),
        hopeless=isinstance(err, _HOPELESS) or err.status in _REFUSALS,
        retry_after=err.retry_after if isinstance(err, LMRateLimitError) else None,
    )


def _unreadable_ending(turns: list[Turn], err: Exception) -> _Ending:
    last = turns[-1] if turns else None
    if last is None:
        return _Ending(HARNESS_ERROR, error=_told(err))
    if last.refused:
        return _Ending(REFUSED, error=f"finish reason {last.finish}")
    if last.empty:
        return _Ending(EMPTY_REPLY, error=f"finish reason {last.finish}", retryable=True)
    return _Ending(NO_ANSWER, error=f"{type(err).__name__}, finish reason {last.finish}")


def _scored(
    world: World, engine: RecordingEngine, ending: _Ending, started_at: str, duration: float
) -> CaseResult:
    utility, succeeded = None, None
    termination, error = ending.termination, ending.error
    try:
        if termination in RESOLVED:
            verdict = world.score(ending.answer)
            utility, succeeded = verdict.utility, verdict.attack_succeeded
        elif world.attack_succeeded(""):
            succeeded = True
    except Exception as err:
        termination, error = HARNESS_ERROR, f"scoring rule: {_told(err)}"
    turns = tuple(engine.log.turns)
    trace = _trace(turns, world, ending.answer, termination)
    return CaseResult(
        attempt=Attempt(
            termination=termination,
            error=error,
            status=ending.status,
            requests=engine.log.requests,
            started_at=started_at,
            duration_s=duration,
            trace=digest(trace),
            retry_after=ending.retry_after,
        ),
        utility=utility,
        attack_succeeded=succeeded,
        exposed=world.exposed(),
        ended_by=ending.ended_by,
        turns=turns,
        with_tools=engine.log.with_tools,
        trace=trace,
        retryable=ending.retryable,
        hopeless=ending.hopeless,
    )


def _trace(turns: tuple[Turn, ...], world: World, answer: str, termination: str) -> dict[str, Any]:
    # Ids, times and token counts differ between identical runs, so they stay outside.
    kept = ("text", "calls", "finish", "refused")
    return {
        "turns": [
            {
                name: list(value) if name == "calls" else value
                for name, value in asdict(turn).items()
                if name in kept
            }
            for turn in turns
        ],
        "events": list(world.events),
        "answer": answer,
        "termination": termination,
    }


def _told(err: Exception) -> str:
    # dspy's errors put the name of the pinned engine before their message.
    message = str(getattr(err, "message", "") or err).strip() or "no message"
    text = storable(f"{type(err).__name__}: {message.splitlines()[0]}")
    return text if len(text) <= _ERROR_LENGTH else text[:_ERROR_LENGTH] + " ..."
