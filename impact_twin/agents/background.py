"""One event loop a process for all asynchronous agents, on a daemon thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Awaitable
from typing import Any

GRACE_S = 0.5

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def wait_for(awaitable: Awaitable[Any], timeout_s: float) -> Any:
    """Run an awaitable on the shared loop and return its result.

    One loop serves all cases, because clients that an agent's module makes once (HTTP pools, for
    instance) belong to the loop that they were first used on. What is still running a moment after
    the case's time is cancelled; the runner has given the case up by then.

    Args:
        awaitable: What an agent's `run` returned.
        timeout_s: Seconds until it is cancelled, > 0.

    Raises:
        BaseException: whatever the awaitable raised, `SystemExit` included; `TimeoutError` when
            it was cancelled.
    """
    future = asyncio.run_coroutine_threadsafe(_guard(awaitable), _running_loop())
    try:
        value, error = future.result(timeout_s + GRACE_S)
    except concurrent.futures.TimeoutError:
        future.cancel()
        raise TimeoutError("cancelled after the case's time") from None
    if error is not None:
        raise error
    return value


async def _guard(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    # A SystemExit that leaves a task would end the loop, and with it every other case.
    try:
        return await awaitable, None
    except asyncio.CancelledError as error:
        return None, error
    except BaseException as error:
        return None, error


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_serve, args=(_loop,), name="agents-loop", daemon=True).start()
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    while not loop.is_closed():
        # A task that an agent started by itself may raise SystemExit.
        with contextlib.suppress(BaseException):
            loop.run_forever()
