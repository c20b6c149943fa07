"""Runs one agent object on one case and turns whatever happens into a `CaseOutcome`."""

from __future__ import annotations

import inspect
import itertools
import math
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from impact_twin.agents.background import wait_for
from impact_twin.agents.protocol import CaseOutcome, CaseRequest, Usage
from impact_twin.agents.provider_errors import of_provider
from impact_twin.agents.redact import error_line, redact
from impact_twin.agents.tools import make_tools
from impact_twin.procurement.model import JSON
from impact_twin.text import storable

MAX_ANSWER = 100_000
KEPT_ANSWER = 2_000
MAX_REPORTED = 500
MAX_COUNT = 2**53 - 1

_INPUT_KEYS = ("input_tokens", "prompt_tokens")
_OUTPUT_KEYS = ("output_tokens", "completion_tokens")
_COST_KEYS = ("cost_usd", "estimated_cost_usd", "cost")


class BadResultError(Exception):
    """What `run` returned can't be used.

    Args:
        kind: Short fixed word.
        message: One line of detail.
        answer: What of the answer is kept.
    """

    def __init__(self, kind: str, message: str, answer: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.answer = answer


class Instances:
    """Gives every agent object a number that no other object of the run gets.

    `id()` won't do: a freed agent's address is soon another's.
    """

    _KEPT = 64

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serial = itertools.count(1)
        self._by_id: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._strong: OrderedDict[int, tuple[Any, int]] = OrderedDict()

    def number(self, agent: object) -> int:
        """Return the object's number; the same object always gets the same one.

        The process id is part of it, so numbers from several processes can be compared.
        """
        with self._lock:
            return self._find(agent)

    def _find(self, agent: object) -> int:
        key = id(agent)
        weak = self._by_id.get(key)
        if weak is not None and weak[0]() is agent:
            return weak[1]
        strong = self._strong.get(key)
        if strong is not None:
            return strong[1]
        number = os.getpid() * 2**30 + next(self._serial)
        try:
            # Deleting only what is still dead: the address may be in use again by then.
            self._by_id[key] = (weakref.ref(agent, lambda ref: self._forget(key, ref)), number)
        except TypeError:
            self._strong[key] = (agent, number)
            if len(self._strong) > self._KEPT:
                self._strong.popitem(last=False)
        return number

    def _forget(self, key: int, ref: weakref.ref[Any]) -> None:
        entry = self._by_id.get(key)
        if entry is not None and entry[0] is ref:
            self._by_id.pop(key, None)


def call_agent(make: Callable[[], Any], request: CaseRequest, instances: Instances) -> CaseOutcome:
    """Make an agent, run it on the case, and say how that ended.

    Args:
        make: Returns a fresh agent; may return an awaitable of one.
        request: The case.
        instances: Numbers the agent objects.

    Returns:
        `completed`, or `agent_error` with one of the kinds `build_failed`, `no_run_method`,
        `exception`, `system_exit`, `interrupted`, `bad_return_type`, `bad_usage`,
        `answer_not_text`, `answer_too_long`; or what an error of a model provider's client means,
        see `provider_errors`.
    """
    number: int | None = None
    stage = "build_failed"
    try:
        agent = settled(make(), request.deadline_s)
        number = instances.number(agent)
        run = getattr(agent, "run", None)
        if agent is None or not callable(run):
            return failed("no_run_method", "the factory's agent has no method run", number)
        stage = "exception"
        result = settled(
            run(request.query, make_tools(request), system_directive=request.system_directive),
            request.deadline_s,
        )
        return _outcome(result, number)
    except BaseException as error:
        return ended(error, stage, number)


def ended(error: BaseException, stage: str, number: int | None) -> CaseOutcome:
    """Say how a case ended whose agent's code raised.

    Args:
        error: What was raised.
        stage: The kind of an error that is none of the known ones.
        number: The agent object's, if there is one.

    Raises:
        KeyboardInterrupt: it was raised in the main thread, so it is the user's.
    """
    if isinstance(error, BadResultError):
        return failed(error.kind, error.message, number, error.answer)
    if isinstance(error, SystemExit):
        return failed("system_exit", f"sys.exit({error_line(repr(error.code))})", number)
    if isinstance(error, KeyboardInterrupt):
        # Signals reach the main thread only; elsewhere the agent raised it by itself.
        if threading.current_thread() is threading.main_thread():
            raise error
        return failed("interrupted", error_line(error), number)
    failure = of_provider(error)
    if failure is None:
        return failed(stage, error_line(error), number)
    return CaseOutcome(
        failure.termination,
        error_kind=failure.kind,
        message=error_line(error),
        http_status=failure.http_status,
        instance=number,
    )


def settled(value: Any, timeout_s: float) -> Any:
    """Return a value, or what an awaitable gives within so many seconds."""
    return wait_for(value, timeout_s) if inspect.isawaitable(value) else value


def failed(kind: str, message: str, number: int | None, answer: str = "") -> CaseOutcome:
    """Return the end of a case by an error of the agent's."""
    return CaseOutcome(
        termination="agent_error",
        final_answer=answer,
        error_kind=kind,
        message=error_line(message),
        instance=number,
    )


def _outcome(result: Any, number: int | None) -> CaseOutcome:
    answer, usage, reported = _read_result(result)
    detail: dict[str, JSON] = {} if reported is None else {"reported_tool_calls": reported}
    return CaseOutcome(
        termination="completed",
        final_answer=answer,
        usage=usage,
        instance=number,
        detail=detail,
    )


def _read_result(result: Any) -> tuple[str, Usage | None, list[str] | None]:
    if isinstance(result, str):
        return checked_answer(result), None, None
    get = _getter(result)
    if get is None:
        raise BadResultError(
            "bad_return_type",
            f"run returned {type(result).__name__}: expected text or an object with final_answer",
        )
    final = get("final_answer")
    if not isinstance(final, str):
        raise BadResultError(
            "bad_return_type", f"final_answer is {type(final).__name__}: expected text"
        )
    answer = checked_answer(final)
    return answer, read_usage(get("usage")), _reported(get("tool_calls"))


def _getter(result: Any) -> Callable[[str], Any] | None:
    if isinstance(result, Mapping):
        return result.get
    if hasattr(result, "final_answer"):
        return lambda key: getattr(result, key, None)
    return None


def checked_answer(answer: str) -> str:
    """Return an answer that may be stored.

    Raises:
        BadResultError: longer than `MAX_ANSWER` characters, or with lone surrogates; the first
            `KEPT_ANSWER` characters are kept.
    """
    # A subclass of str could lie about itself later.
    answer = str.__str__(answer)
    start = redact(storable(answer[: KEPT_ANSWER + 200]))[:KEPT_ANSWER]
    if len(answer) > MAX_ANSWER:
        raise BadResultError(
            "answer_too_long",
            f"the answer has {len(answer)} characters; at most {MAX_ANSWER} are taken",
            start,
        )
    if storable(answer) != answer:
        raise BadResultError("answer_not_text", "the answer holds lone surrogates", start)
    return redact(answer)


def read_usage(usage: Any) -> Usage | None:
    """Return the usage that an agent reported; None when it reported nothing.

    Args:
        usage: A mapping or an object with `input_tokens` or `prompt_tokens`, `output_tokens` or
            `completion_tokens`, and `cost_usd`, `estimated_cost_usd` or `cost`; each may be
            missing or None.

    Raises:
        BadResultError: a figure is no finite number >= 0, or not whole where it counts tokens.
    """
    if usage is None:
        return None
    get = usage.get if isinstance(usage, Mapping) else lambda key: getattr(usage, key, None)
    inputs = _figure(get, _INPUT_KEYS, whole=True)
    outputs = _figure(get, _OUTPUT_KEYS, whole=True)
    cost = _figure(get, _COST_KEYS, whole=False)
    if inputs is None and outputs is None and cost is None:
        return None
    return Usage(int(inputs or 0), int(outputs or 0), cost)


def _figure(get: Callable[[str], Any], keys: tuple[str, ...], *, whole: bool) -> float | None:
    for key in keys:
        value = get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadResultError("bad_usage", f"usage.{key} is {type(value).__name__}")
        if not 0 <= value <= MAX_COUNT or not math.isfinite(value):
            raise BadResultError("bad_usage", f"usage.{key} is not a finite number from 0")
        if whole and value != int(value):
            raise BadResultError("bad_usage", f"usage.{key} is not a whole number")
        return float(value)
    return None


def _reported(calls: Any) -> list[str] | None:
    """Return the names of the tool calls that the agent says it made: a claim, kept for reading."""
    if not isinstance(calls, list | tuple):
        return None
    names = []
    for item in calls[:MAX_REPORTED]:
        name = item.get("name") if isinstance(item, Mapping) else getattr(item, "name", None)
        names.append(redact(storable(name[:100])) if isinstance(name, str) else "?")
    return names
