"""Counts the HTTP requests of the OpenAI and Anthropic clients that an AgentDojo pipeline holds.

A pipeline's model element retries inside, and its client once more; only the wire shows how often.
"""

from __future__ import annotations

import inspect
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from impact_twin.agents.protocol import CaseMonitor, ModelCall, Usage
from impact_twin.agents.provider_errors import RETRY_AFTER_CAP_S, capped, retry_after_of
from impact_twin.text import storable

_MARK = "_impact_twin_listening"


class Traffic:
    """The requests of one turn of one case.

    Args:
        monitor: Where to report them.
    """

    def __init__(self, monitor: CaseMonitor) -> None:
        self._monitor = monitor
        self._lock = threading.Lock()
        self._open: list[tuple[float, float]] = []

    @contextmanager
    def on(self) -> Iterator[Traffic]:
        """Make this the turn that clients in the current context report to."""
        token = _turn.set(self)
        try:
            yield self
        finally:
            _turn.reset(token)

    def begin(self) -> None:
        """A request leaves. One that is still open has failed without a reply."""
        with self._lock:
            stale, self._open = self._open, [(time.time(), time.monotonic())]
        for started, clock in stale:
            self._monitor.request_finished(_lost(started, clock))
        self._monitor.request_started()

    def reply(self, status: int, headers: Mapping[str, str], body: Any) -> None:
        """A reply has come."""
        with self._lock:
            started, clock = self._open.pop() if self._open else (time.time(), time.monotonic())
        if status == 429:
            wish = capped(retry_after_of(headers))
            self._monitor.rate_limited(min(RETRY_AFTER_CAP_S, 1.0) if wish is None else wish)
        self._monitor.request_finished(_read(started, time.monotonic() - clock, status, body))

    def end(self, call: ModelCall) -> None:
        """The turn is over; what is still open ended with it."""
        with self._lock:
            still, self._open = self._open, []
        for _ in still:
            self._monitor.request_finished(call)


_turn: ContextVar[Traffic | None] = ContextVar("impact_twin_turn", default=None)


def listen(client: Any) -> bool:
    """Hook into the HTTP client below an OpenAI or Anthropic client; False when there is none."""
    inner: Any = getattr(client, "_client", None)
    hooks = getattr(inner, "event_hooks", None)
    if not isinstance(hooks, dict):
        return False
    if getattr(inner, _MARK, False):
        return True
    is_async = inspect.iscoroutinefunction(getattr(inner, "send", None))
    began, replied = (_began_async, _replied_async) if is_async else (_began, _replied)
    inner.event_hooks = {
        "request": [*hooks.get("request", []), began],
        "response": [*hooks.get("response", []), replied],
    }
    setattr(inner, _MARK, True)
    return True


def _began(request: Any) -> None:
    del request
    turn = _turn.get()
    if turn is not None:
        turn.begin()


def _replied(response: Any) -> None:
    turn = _turn.get()
    if turn is None:
        return
    body = None
    if _is_json(response):
        response.read()
        body = _json(response)
    turn.reply(response.status_code, response.headers, body)


async def _began_async(request: Any) -> None:
    _began(request)


async def _replied_async(response: Any) -> None:
    turn = _turn.get()
    if turn is None:
        return
    body = None
    if _is_json(response):
        await response.aread()
        body = _json(response)
    turn.reply(response.status_code, response.headers, body)


def _is_json(response: Any) -> bool:
    return "json" in str(response.headers.get("content-type", ""))


def _json(response: Any) -> Any:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None


def _read(started: float, duration: float, status: int, body: Any) -> ModelCall:
    """Read usage, id and finish reason of an OpenAI or Anthropic reply."""
    data = body if isinstance(body, Mapping) else {}
    usage = data.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    finish = first.get("finish_reason") if isinstance(first, Mapping) else None
    failed = status >= 400
    return ModelCall(
        started=started,
        duration_s=duration,
        finish_reason=_word(finish or data.get("stop_reason")),
        response_id=_word(data.get("id")),
        http_status=status if failed else None,
        error="http_error" if failed else None,
        usage=Usage(
            _count(usage.get("prompt_tokens", usage.get("input_tokens"))),
            _count(usage.get("completion_tokens", usage.get("output_tokens"))),
        ),
    )


def _word(value: Any) -> str | None:
    return storable(value[:200]) if isinstance(value, str) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def _lost(started: float, clock: float) -> ModelCall:
    return ModelCall(started=started, duration_s=time.monotonic() - clock, error="connection")
