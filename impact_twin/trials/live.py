"""One try at a case while it runs: its world, its monitor, and how it ends."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from impact_twin.agents.protocol import CaseOutcome, ModelCall
from impact_twin.agents.tools import GONE
from impact_twin.procurement.model import JSON
from impact_twin.text import storable
from impact_twin.trials.codec import clean_call
from impact_twin.trials.ledger import Ledger
from impact_twin.trials.throttle import Throttle

if TYPE_CHECKING:
    from impact_twin.procurement.runtime import CaseRuntime

# A leftover agent that calls in a tight loop would take the interpreter away from living cases.
_LATE_DELAY_S = 0.05
MAX_CALLS_KEPT = 10_000


class Monitor:
    """The `CaseMonitor` of one try.

    Args:
        ledger: Adds up the run's usage.
        throttle: The run's shared slow-down.
    """

    def __init__(self, ledger: Ledger, throttle: Throttle) -> None:
        self._ledger = ledger
        self._throttle = throttle
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._open = 0
        self._held_until = 0.0
        self._requests = 0
        self._calls: list[ModelCall] = []
        self._delivered: tuple[str, ...] | None = None

    def request_started(self) -> None:
        """Count a request as outstanding."""
        with self._lock:
            self._open += 1
            self._requests += 1

    def request_finished(self, call: ModelCall) -> None:
        """Keep a request that has ended; after the case's end only the run's bill grows."""
        call = clean_call(call)
        with self._lock:
            self._open = max(0, self._open - 1)
            if not self._over.is_set() and len(self._calls) < MAX_CALLS_KEPT:
                self._calls.append(call)
        self._ledger.add_call(call)
        if call.error is None:
            self._throttle.went_well()

    def delivered(self, texts: Sequence[str]) -> None:
        """Keep what the model was shown."""
        shown = tuple(storable(text) for text in texts)
        with self._lock:
            if not self._over.is_set():
                self._delivered = shown

    def rate_limited(self, retry_after_s: float) -> None:
        """Slow the whole run down."""
        self._throttle.slow_down(retry_after_s)

    def wait_turn(self) -> bool:
        """Wait for this request's turn; return False when the case is over before it."""
        seconds = self.take_turn()
        return not (self._over.wait(seconds) if seconds > 0 else self._over.is_set())

    def take_turn(self) -> float:
        """Return the seconds to wait for this request's turn, and count them as outstanding."""
        seconds = self._throttle.turn()
        if seconds > 0:
            with self._lock:
                self._held_until = max(self._held_until, time.monotonic() + seconds)
        return seconds

    def outstanding(self) -> bool:
        """Return whether a request is under way, or held back by the slow-down."""
        with self._lock:
            return self._open > 0 or time.monotonic() < self._held_until

    def finish(self) -> None:
        """End the try: nothing is added to its record any more."""
        self._over.set()

    @property
    def requests(self) -> int:
        """Requests that were started."""
        return self._requests

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Requests that ended within the try, in order."""
        with self._lock:
            return tuple(self._calls)

    @property
    def shown(self) -> tuple[str, ...] | None:
        """What the model was shown; None when nobody said."""
        return self._delivered


class LiveTry:
    """One try: what happens first ends it, and nothing after that counts.

    Args:
        runtime: The try's fresh world.
        monitor: Where the agent layer reports.
        on_late: Called for each tool call after the end.
    """

    def __init__(self, runtime: CaseRuntime, monitor: Monitor, on_late: Callable[[], None]) -> None:
        self.runtime = runtime
        self.monitor = monitor
        self._on_late = on_late
        self._changed = threading.Event()
        self._lock = threading.Lock()
        self._outcome: CaseOutcome | None = None
        self._over = False
        self._pid = os.getpid()

    def call(self, name: str, arguments: JSON) -> str:
        """Call a tool of the try's world."""
        if os.getpid() != self._pid:  # a process that the agent forked has but a copy of the world
            return GONE
        if self._over:
            self._on_late()
            if not _on_a_loop():
                time.sleep(_LATE_DELAY_S)
        output = self.runtime.call(name, arguments)
        if self.runtime.limit_reached:
            self._changed.set()
        return output

    def finish(self, outcome: CaseOutcome) -> None:
        """Say how the agent ended; ignored when the try is over already."""
        with self._lock:
            if not self._over and self._outcome is None:
                self._outcome = outcome
        self._changed.set()

    def wait(self, seconds: float) -> None:
        """Wait until the agent ended, used up its tool calls, or the time is over."""
        self._changed.wait(seconds)

    def close(self) -> CaseOutcome | None:
        """End the try, seal its world, and return how the agent ended; None when it had not."""
        with self._lock:
            self._over = True
            outcome = self._outcome
        self.runtime.seal()
        self.monitor.finish()
        return outcome


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
